// Peer: the user behind a connected unix socket.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tt::client {

// Connects to the socket at `path`. The caller owns the descriptor, which is non-blocking and close-on-exec.
// UNAVAILABLE if nothing accepts.
absl::StatusOr<int> connect_unix(const std::string& path);

// Returns the users that an engine may run as: this user, root, and those in TELETENSOR_ENGINE_USER (comma-separated
// names or numbers). INVALID_ARGUMENT if it names a user that does not exist.
absl::StatusOr<std::vector<uid_t>> trusted_users();

// PERMISSION_DENIED if the process that listens at the other end of `socket` runs as an untrusted user. `address` is
// for the message.
absl::Status check_peer(int socket, const std::string& address);

}  // namespace tt::client
