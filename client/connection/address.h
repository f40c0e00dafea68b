// Address: the address of an engine; also finds the tokens that the engine requires.
#pragma once

#include <string>
#include <string_view>

#include "proto/certificate.h"

namespace tt::client {

inline constexpr int kDefaultPort = 7070;

// By what an engine with TLS is recognised; see client/connection/trust.h.
struct Trust {
  std::string fingerprint{};  // of the engine's certificate; empty: an authority has to have signed it
  TlsFiles files{};           // the client's own certificate, and the authorities; empty: the system's
  bool is_new = false;        // the user gave the fingerprint
};

struct Address {
  std::string text;      // as the user writes it: "teletensors://gpu-box:7070", "unix:/run/teletensor.sock"
  std::string target;    // gRPC's target string
  std::string socket{};  // the path of a unix socket; empty for TCP
  std::string host{};    // of TCP, an IPv6 address without brackets
  int port = 0;
  bool tls = false;
  Trust trust{};
};

// Whether the address is reachable from this host only.
bool is_local(const Address& address);

// Accepts "host", "host:port", "[v6]:port", the same after "teletensors://" (with TLS) and "teletensor://" (without),
// and "unix:PATH", each with whitespace at its ends. Throws Error (ValueError) on anything else, such as a host that is
// not ASCII.
Address parse_address(std::string_view text);

// Returns the first of these that is set: `given`, TELETENSOR_TOKEN, the contents of token_file(). Empty if none is
// set. Tokens lose the whitespace at their ends. Throws Error (ValueError) if one has characters that are not printable
// ASCII, which a call cannot contain.
std::string find_token(const std::string& given);
// Returns the first of these that is set: `given`, TELETENSOR_ADMIN_TOKEN, the contents of the file that
// TELETENSOR_ADMIN_TOKEN_FILE names, and, for an engine on this host only, the contents of admin-token in
// token_file()'s folder. Empty if none is set.
std::string find_admin_token(const std::string& given, const Address& address);
// Returns the path of the token file of this user's engine: TELETENSOR_TOKEN_FILE, else teletensor/token in the user's
// configuration folder (base/user_folder.h). Empty if the user has none.
std::string token_file();
// The same without TELETENSOR_TOKEN_FILE.
std::string token_file_in_configuration();

}  // namespace tt::client
