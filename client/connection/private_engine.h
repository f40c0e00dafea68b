// PrivateEngine: a teletensord of the caller's own, on a unix socket that nobody else can reach.
//
// Owns the process, which makes a fresh folder of mode 0700 and removes it. The engine ends with its owner: stop() ends
// it politely, and where the owner dies without, the engine sees its standard input end and a pidfd of the owner's
// become readable. A forked copy of the owner ends nothing, and keeps nothing alive.
#pragma once

#include <sys/types.h>

#include <string>

namespace tt::client {

class PrivateEngine {
 public:
  // Starts the engine and waits until it is ready. Throws Error (kConnection) where there is no binary, or it does not
  // get ready; Interrupted.
  PrivateEngine();
  ~PrivateEngine() { stop(); }
  PrivateEngine(const PrivateEngine&) = delete;
  PrivateEngine& operator=(const PrivateEngine&) = delete;

  // "unix:/tmp/teletensor-private-Xy12/engine.sock"
  const std::string& address() const { return address_; }
  pid_t pid() const { return pid_; }

  // Idempotent. One thread.
  void stop() noexcept;

  // TELETENSOR_DAEMON, else teletensord beside this library (as a wheel lays it out), in the build tree or on the PATH.
  // Throws Error (kConnection) where there is none.
  static std::string find_binary();

 private:
  void start(const std::string& binary);
  void wait_until_ready(int output);
  bool take_ready_line(const std::string& said);
  void remove_folder() noexcept;

  std::string address_;  // from its READY line
  pid_t owner_;
  pid_t pid_ = -1;
  int input_ = -1;  // the writing end of the engine's standard input
};

}  // namespace tt::client
