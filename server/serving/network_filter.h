// network_filter: a seccomp filter with which a child process gives up the network and other processes.
#pragma once

namespace tt::server {

// Call it in a child process between fork() and exec(): it only makes system calls that are safe there. The filter
// stays after exec() and for the processes that the program starts. Afterwards, socket() gives unix sockets only (else
// EAFNOSUPPORT), io_uring fails with ENOSYS, reading other processes and tracing them with EPERM, and a call of another
// architecture ends the process. Requires PR_SET_NO_NEW_PRIVS. Returns false if the kernel has no seccomp filters.
bool refuse_network();

}  // namespace tt::server
