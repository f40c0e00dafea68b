// Daemon: a teletensord for a test, on a unix socket (and loopback where asked) in a folder of its own.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "teletensor/v1/admin.grpc.pb.h"

namespace tt::client::testing {

class Daemon {
 public:
  // Starts it with the further `arguments`, and waits until it accepts connections. Fails the test where it does not.
  explicit Daemon(std::vector<std::string> arguments = {});
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  std::string address() const { return "unix:" + socket(); }
  std::string socket() const { return folder_ + "/engine.sock"; }
  std::string token() const;
  pid_t pid() const { return pid_; }
  // SIGKILL: no goodbye.
  void kill_now();
  // SIGSTOP; returns when no thread of it runs any more.
  void stop_running();
  // What the engine says of itself and its sessions.
  teletensor::v1::StatusReply status() const;

 private:
  std::string folder_;
  pid_t pid_ = -1;
};

}  // namespace tt::client::testing
