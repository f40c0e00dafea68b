// ShutdownWaiter: waits for the daemon's end: a signal, Admin.Drain, or the exit of its parent.
#pragma once

namespace tt::server {

class ShutdownWaiter {
 public:
  // Blocks SIGTERM and SIGINT until `wait`. Must be constructed before any other thread starts.
  ShutdownWaiter();
  ~ShutdownWaiter();
  ShutdownWaiter(const ShutdownWaiter&) = delete;
  ShutdownWaiter& operator=(const ShutdownWaiter&) = delete;

  // Makes `wait` return. From any thread.
  void end();
  // Waits for the first signal, for end(), for end of file on standard input (if `watch_stdin`), or until `client`, a
  // pidfd of the parent, is readable (-1: none). The kernel closes the parent's end of standard input when the parent
  // dies, unless a forked copy of the parent holds it too; hence the pidfd. After return a second signal ends the
  // process at once. Returns the reason.
  const char* wait(bool watch_stdin, int client = -1);
  // Whether wait() returned because the parent exited.
  bool client_gone() const { return client_gone_; }

 private:
  int signals_;
  int ended_;
  bool client_gone_ = false;
};

}  // namespace tt::server
