// containment: what the process of a worker gives up, beside system calls (server/workers/syscall_filter.h).
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace tt::server {

// Call first, before other threads exist. The process ends with its engine (with the thread that started it), gains no
// privileges by starting a program, and cannot be traced, read or dumped by other processes of its user.
absl::Status begin_containment();

// Limits the process's private memory to what it has now, `bytes`, and a reserve for stacks and the memory of
// libraries. Limits what the accounts of sessions do not count; an allocation beyond it fails, and may end the process.
// Counts address space, not the pages in use; mapped files and shared memory do not count.
absl::Status limit_memory(uint64_t bytes);

// Gives the processors to other workers first. Call before other threads exist.
void lower_priority();

}  // namespace tt::server
