// Peer: whom a connected unix socket leads to.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tt::client {

// Connects to the socket at `path`. The descriptor is the caller's; it does not block and is closed by exec.
// UNAVAILABLE where nobody accepts.
absl::StatusOr<int> connect_unix(const std::string& path);

// The users that an engine may run as: this one, root, and those in TELETENSOR_ENGINE_USER (names or numbers,
// comma-separated). INVALID_ARGUMENT where it names a user that does not exist.
absl::StatusOr<std::vector<uid_t>> trusted_users();

// PERMISSION_DENIED where the process that listens at the other end of `socket` is of a user that is not trusted.
// `address` is for the message.
absl::Status check_peer(int socket, const std::string& address);

}  // namespace tt::client
