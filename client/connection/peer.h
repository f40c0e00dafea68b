// Peer: checks which user runs the process at the other end of a unix socket.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tt::client {

// Connects to the socket at `path`. The caller owns the descriptor, which is non-blocking and close-on-exec. Returns
// UNAVAILABLE if no process accepts the connection.
absl::StatusOr<int> connect_unix(const std::string& path);

// Returns the users that an engine may run as: this user, root, and those in TELETENSOR_ENGINE_USER (comma-separated
// names or numbers). Returns INVALID_ARGUMENT if the variable names a user that does not exist.
absl::StatusOr<std::vector<uid_t>> trusted_users();

// Returns PERMISSION_DENIED if the process that listens at the other end of `socket` runs as an untrusted user.
// `address` is for the message.
absl::Status check_peer(int socket, const std::string& address);

}  // namespace tt::client
