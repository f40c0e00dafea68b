// Lifetime: what ends the daemon: a signal, Admin.Drain, or its parent's death.
#pragma once

namespace tt::server {

class Lifetime {
 public:
  // From here on SIGTERM and SIGINT wait for `wait`: to be made before any other thread.
  Lifetime();
  ~Lifetime();
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;

  // Asks `wait` to return. From any thread.
  void end();
  // Until the first signal, or end(), or (watch_stdin) standard input's end: the parent holds its other side, and the
  // kernel closes that however the parent dies, unless a copy of the parent holds it too. Hence also until `client` is
  // readable, a pidfd of the parent's; -1: none. A second signal then ends the process at once. Gives the reason.
  const char* wait(bool watch_stdin, int client = -1);
  // Whether wait() has returned because the parent is gone.
  bool client_gone() const { return client_gone_; }

 private:
  int signals_;
  int ended_;
  bool client_gone_ = false;
};

}  // namespace tt::server
