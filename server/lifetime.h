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
  // kernel closes that however the parent dies. A second signal then ends the process at once. Gives the reason.
  const char* wait(bool watch_stdin);

 private:
  int signals_;
  int ended_;
};

}  // namespace tt::server
