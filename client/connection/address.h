// Address: the address of an engine; also finds the tokens that the engine requires.
#pragma once

#include <string>
#include <string_view>

namespace tt::client {

inline constexpr int kDefaultPort = 7070;

struct Address {
  std::string text;    // as the user writes it: "gpu-box:7070", "unix:/run/teletensor.sock"
  std::string target;  // gRPC's target string
  std::string socket;  // the path of a unix socket; empty for TCP
};

// Whether the address is reachable from this host only.
bool is_local(const Address& address);

// Accepts "host", "host:port", "[v6]:port" and "unix:PATH". Throws Error (ValueError) on anything else.
Address parse_address(std::string_view text);

// Returns the first of these that is set: `given`, TELETENSOR_TOKEN, the contents of token_file(). Empty if none is
// set.
std::string find_token(const std::string& given);
// Returns the first of these that is set: `given`, TELETENSOR_ADMIN_TOKEN, the contents of the file that
// TELETENSOR_ADMIN_TOKEN_FILE names, and, for an engine on this host only, the contents of admin-token in
// token_file()'s folder. Empty if none is set.
std::string find_admin_token(const std::string& given, const Address& address);
// Returns the path of the token file of this user's engine: TELETENSOR_TOKEN_FILE, else teletensor/token in the user's
// configuration folder.
std::string token_file();

}  // namespace tt::client
