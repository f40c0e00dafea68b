// WorkerProcess: a child process of an engine that serves one principal, and the engine's calls to it.
//
// The program is the engine's own. The child gets one end of a socket pair, over which the engine calls it by gRPC
// (proto/teletensor/v1/worker.proto, and Admin), and a pidfd of the engine. It must be started by a thread that lives
// longer than the child, because the kernel ends the child with that thread. Not thread-safe, except for the stubs.
#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "proto/wire.h"
#include "teletensor/v1/admin.grpc.pb.h"
#include "teletensor/v1/worker.grpc.pb.h"

namespace tt::server {

class WorkerProcess {
 public:
  // Descriptors of the child.
  static constexpr int kControl = 3, kEngine = 4;

  // Starts the program with these arguments, after its name. UNAVAILABLE if that fails.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> start(const std::vector<std::string>& arguments);
  // Kills the process if it has not been seen to end.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Readable once the process has ended; -1 on a kernel without pidfds.
  int pidfd() const { return pidfd_.get(); }
  v1::Worker::Stub& worker() const { return *worker_; }
  v1::Admin::Stub& admin() const { return *admin_; }

  // Whether the process has ended.
  bool has_ended();
  // After its end: how it ended, such as "signal 11 (Segmentation fault)" or "exit code 0".
  std::string how_it_ended() const;
  // Whether it ended by itself, without a fault.
  bool ended_well() const;
  // Does nothing once has_ended() has returned true.
  void send_signal(int signal);

 private:
  WorkerProcess(pid_t pid, int control);

  const pid_t pid_;
  const FileDescriptor pidfd_;
  bool ended_ = false;
  int status_ = 0;  // of waitpid()
  std::unique_ptr<v1::Worker::Stub> worker_;
  std::unique_ptr<v1::Admin::Stub> admin_;
};

}  // namespace tt::server
