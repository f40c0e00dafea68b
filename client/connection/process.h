// process_has_ended: whether a process of this host has ended.
#pragma once

#include <sys/types.h>

namespace tt::client {

// Returns false if that is unknown, and if another process has the number now.
bool process_has_ended(pid_t pid);

}  // namespace tt::client
