#include "server/daemon/shutdown_signal.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

namespace tt::server {
namespace {

bool at_end(const pollfd& input) {
  if (input.revents == 0) return false;
  char ignored[256];
  ssize_t got = read(input.fd, ignored, sizeof ignored);
  return got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
}

}  // namespace

sigset_t ShutdownWaiter::handled_signals() const {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  if (on_hangup_) sigaddset(&set, SIGHUP);
  if (on_upgrade_) sigaddset(&set, SIGUSR2);
  return set;
}

ShutdownWaiter::ShutdownWaiter(std::function<void()> on_hangup, std::function<void()> on_upgrade)
    : on_hangup_(std::move(on_hangup)), on_upgrade_(std::move(on_upgrade)) {
  sigset_t set = handled_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  ended_ = eventfd(0, EFD_CLOEXEC);
}

ShutdownWaiter::~ShutdownWaiter() {
  close(signals_);
  close(ended_);
}

void ShutdownWaiter::end() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(ended_, &one, sizeof one);
}

const char* ShutdownWaiter::wait(bool watch_stdin, int client) {
  pollfd watched[] = {
      {signals_, POLLIN, 0}, {ended_, POLLIN, 0}, {watch_stdin ? STDIN_FILENO : -1, POLLIN, 0}, {client, POLLIN, 0}};
  const char* reason = nullptr;
  while (reason == nullptr) {
    if (poll(watched, 4, -1) < 0 && errno != EINTR) reason = "poll failed";
    if (watched[0].revents != 0) {
      signalfd_siginfo info;
      const bool received = read(signals_, &info, sizeof info) == sizeof info;
      if (received && info.ssi_signo == SIGHUP) {
        on_hangup_();
      } else if (received && info.ssi_signo == SIGUSR2) {
        on_upgrade_();
      } else {
        reason = "a signal";
      }
    }
    if (watched[1].revents != 0) reason = "drained";
    client_exited_ = at_end(watched[2]) || watched[3].revents != 0;
    if (client_exited_) reason = "the client exited";
  }
  sigset_t set = handled_signals();
  signal(SIGTERM, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  if (on_hangup_) signal(SIGHUP, SIG_IGN);  // logs may be rotated while sessions end
  if (on_upgrade_) signal(SIGUSR2, SIG_IGN);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  return reason;
}

}  // namespace tt::server
