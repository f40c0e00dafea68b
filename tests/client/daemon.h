// Daemon: runs a teletensord for a test, on a unix socket (and loopback TCP on request) in a temporary folder.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "teletensor/v1/admin.grpc.pb.h"

namespace tt::client::testing {

class Daemon {
 public:
  // Starts the daemon with additional `arguments` and waits until it accepts connections; fails the test otherwise.
  explicit Daemon(std::vector<std::string> arguments = {});
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  std::string address() const { return "unix:" + socket(); }
  std::string socket() const { return folder_ + "/engine.sock"; }
  std::string token() const;
  pid_t pid() const { return pid_; }
  // Sends SIGKILL.
  void kill_now();
  // Sends SIGSTOP; returns when all its threads are stopped.
  void stop_running();
  // The status of the engine and its sessions.
  teletensor::v1::StatusReply status() const;

 private:
  std::string folder_;
  pid_t pid_ = -1;
};

}  // namespace tt::client::testing
