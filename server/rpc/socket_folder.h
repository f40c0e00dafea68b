// Who can replace a socket: the owners and modes of the folders that its path leads through.
#pragma once

#include <filesystem>

#include "absl/status/status.h"

namespace tt::server {

// FAILED_PRECONDITION, with the folder and the reason, where somebody else than this user and root could put another
// socket at a path in `folder`: each folder from the root on, through symbolic links too, has to be owned by this user,
// root or the owner of the root folder, and writable by its owner only, unless it is sticky.
absl::Status check_private_path(const std::filesystem::path& folder);

}  // namespace tt::server
