// PrivateEngine: a teletensord child process on a unix socket that only this user can reach.
//
// Owns the process, which creates and removes its own folder of mode 0700. stop() terminates the engine. If the owner
// dies first, the engine sees the end of its standard input and a readable pidfd of the owner, and exits. A forked
// child of the owner neither ends the engine nor keeps it alive.
#pragma once

#include <sys/types.h>

#include <string>

namespace tt::client {

class PrivateEngine {
 public:
  // Starts the engine and waits until it is ready. Throws Error (kConnection) if there is no binary or the engine does
  // not become ready; throws Interrupted. `installed` is as in find_binary().
  explicit PrivateEngine(const std::string& installed = "");
  ~PrivateEngine() { stop(); }
  PrivateEngine(const PrivateEngine&) = delete;
  PrivateEngine& operator=(const PrivateEngine&) = delete;

  // Returns the engine's address, for example "unix:/tmp/teletensor-private-Xy12/engine.sock".
  const std::string& address() const { return address_; }
  pid_t pid() const { return pid_; }

  // Terminates the engine. Idempotent. Not thread-safe.
  void stop() noexcept;

  // Returns TELETENSOR_DAEMON, else teletensord beside this library, `installed` (that of the Python package
  // teletensor-engine) unless it is empty, in the build tree or on the PATH. Throws Error (kConnection) if there is
  // none.
  static std::string find_binary(const std::string& installed = "");

 private:
  void start(const std::string& binary);
  void wait_until_ready(int output);
  bool find_ready_line(const std::string& said);
  void remove_folder() noexcept;

  std::string address_;  // from the engine's READY line
  pid_t owner_;
  pid_t pid_ = -1;
  int input_ = -1;  // write end of the engine's standard input
};

}  // namespace tt::client
