// syscall_filter: a seccomp filter with which a worker's process gives up the system calls that it never needs.
#pragma once

#include "absl/status/status.h"

namespace tt::server {

// Applies to all threads of the process, now and later, and cannot be undone. Refused calls fail with EPERM: starting
// programs and processes, reading or changing other processes and sending them signals, mounts and namespaces, kernel
// modules, BPF, performance counters, io_uring and keys, and sockets other than unix, IP and netlink. A call of another
// architecture ends the process. Requires PR_SET_NO_NEW_PRIVS. FAILED_PRECONDITION if the kernel has no seccomp
// filters.
absl::Status install_syscall_filter();

}  // namespace tt::server
