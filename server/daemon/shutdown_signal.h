// ShutdownWaiter: waits until the daemon must shut down, because of a signal, Admin.Drain, or the exit of its parent.
#pragma once

#include <csignal>
#include <functional>

namespace tt::server {

class ShutdownWaiter {
 public:
  // Blocks SIGTERM and SIGINT until `wait`, and SIGHUP if `on_hangup` is given. Must be constructed before any other
  // thread starts. `on_hangup` is called by wait() at each SIGHUP, which then does not end the process.
  // The same for `on_upgrade` and SIGUSR2.
  explicit ShutdownWaiter(std::function<void()> on_hangup = {}, std::function<void()> on_upgrade = {});
  ~ShutdownWaiter();
  ShutdownWaiter(const ShutdownWaiter&) = delete;
  ShutdownWaiter& operator=(const ShutdownWaiter&) = delete;

  // Makes `wait` return. Any thread may call it.
  void end();
  // Waits for the first signal, for end(), for end of file on standard input (if `watch_stdin`), or until `client`, a
  // pidfd of the parent, is readable (-1: none). Returns the reason. The pidfd is needed because a forked child of the
  // parent may keep standard input open after the parent has died. After the return, a second signal ends the process
  // at once.
  const char* wait(bool watch_stdin, int client = -1);
  // Whether wait() returned because the parent exited.
  bool client_exited() const { return client_exited_; }

 private:
  sigset_t handled_signals() const;
  const std::function<void()> on_hangup_;
  const std::function<void()> on_upgrade_;
  int signals_;
  int ended_;
  bool client_exited_ = false;
};

}  // namespace tt::server
