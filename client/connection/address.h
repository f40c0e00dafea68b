// Address: where an engine listens, and the token that it asks for.
#pragma once

#include <string>
#include <string_view>

namespace tt::client {

inline constexpr int kDefaultPort = 7070;

struct Address {
  std::string text;    // as people write it: "gpu-box:7070", "unix:/run/teletensor.sock"
  std::string target;  // as gRPC takes it
  std::string socket;  // the path of a unix socket; empty for TCP
};

// Whether the address can only be reached from this host.
bool is_local(const Address& address);

// "host", "host:port", "[v6]:port", "unix:PATH". Throws Error (ValueError) on anything else.
Address parse_address(std::string_view text);

// The first there is of: `given`, TELETENSOR_TOKEN, what token_file() holds. Empty where there is none.
std::string find_token(const std::string& given);
// The first there is of: `given`, TELETENSOR_ADMIN_TOKEN, what the file TELETENSOR_ADMIN_TOKEN_FILE holds, and, for an
// engine on this host alone, what admin-token beside token_file() holds. Empty where there is none.
std::string find_admin_token(const std::string& given, const Address& address);
// Where this user's engine keeps its token: TELETENSOR_TOKEN_FILE, else teletensor/token in the user's configuration.
std::string token_file();

}  // namespace tt::client
