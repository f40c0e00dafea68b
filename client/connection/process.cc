#include "client/connection/process.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace tt::client {
namespace {

// For kernels before 5.3 and sandboxes, which have no pidfd.
bool has_ended_without_pidfd(pid_t pid) {
  siginfo_t child{};
  if (waitid(P_PID, static_cast<id_t>(pid), &child, WEXITED | WNOHANG | WNOWAIT) == 0) return child.si_pid == pid;
  return kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace

bool process_has_ended(pid_t pid) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return errno == ESRCH || has_ended_without_pidfd(pid);
  pollfd end{fd, POLLIN, 0};  // readable when the process has ended, also if nobody has waited for it
  const bool ended = poll(&end, 1, 0) == 1;
  close(fd);
  return ended;
}

}  // namespace tt::client
