// Address: where an engine listens.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tt::server {

struct Address {
  std::string path;  // of a unix socket; empty for TCP
  std::string host;
  std::string port;

  bool is_unix() const { return !path.empty(); }
  // Reached from this host alone.
  bool is_local() const;
  std::string to_string() const;  // "unix:/run/engine.sock", "127.0.0.1:7070", "[::1]:7070"
};

// "unix:PATH" or "HOST:PORT" ("[::1]:7070" with IPv6).
absl::StatusOr<Address> parse_address(absl::string_view text);

// Fails, in one clear line, where somebody listens there already, or another user could replace the socket
// (server/rpc/socket_folder.h). Makes a socket's folder (0700), and removes a socket that nobody listens on any more.
absl::Status claim(const Address& address);

}  // namespace tt::server
