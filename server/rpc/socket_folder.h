// socket_folder: checks the folders on a socket's path, so that other users cannot replace the socket.
#pragma once

#include <filesystem>

#include "absl/status/status.h"

namespace tt::server {

// Returns FAILED_PRECONDITION, with the folder and the reason, if a user other than this one and root could replace a
// socket in `folder`. Each folder from the root on, including targets of symbolic links, must be owned by this user,
// root or the owner of the root folder, and be writable by its owner only unless it is sticky.
absl::Status check_private_path(const std::filesystem::path& folder);

}  // namespace tt::server
