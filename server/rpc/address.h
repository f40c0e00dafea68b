// Address: a unix socket or a TCP host and port on which an engine listens.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tt::server {

struct Address {
  std::string path;  // path of a unix socket; empty for TCP
  std::string host;
  std::string port;

  bool is_unix() const { return !path.empty(); }
  // Whether the address is reachable from this host only.
  bool is_local() const;
  std::string to_string() const;  // "unix:/run/engine.sock", "127.0.0.1:7070", "[::1]:7070"
};

// Parses "unix:PATH" or "HOST:PORT" ("[::1]:7070" with IPv6).
absl::StatusOr<Address> parse_address(absl::string_view text);

// Prepares an address for listening: creates a socket's folder (mode 0700), and removes a stale socket and those of
// its workers. Fails, with a
// one-line message, if another process listens on the address, or if another user could replace the socket
// (server/rpc/socket_folder.h).
absl::Status claim(const Address& address);

}  // namespace tt::server
