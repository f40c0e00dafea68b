#include "server/daemon/worker_control.h"

#include <fcntl.h>
#include <grpcpp/server_posix.h>

#include <chrono>
#include <utility>

namespace tt::server {

WorkerControl::WorkerControl(Admissions& admissions, Sessions& sessions, const EngineStatus& status,
                             std::function<void()> exit)
    : worker_(admissions, sessions),
      admin_(auth_, sessions, admission_, audit_, status, nullptr, std::move(exit), nullptr, {}, {}) {}

absl::StatusOr<std::unique_ptr<WorkerControl>> WorkerControl::start(int fd, Admissions& admissions, Sessions& sessions,
                                                                    const EngineStatus& status,
                                                                    std::function<void()> exit) {
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
    return absl::FailedPreconditionError("expected a worker to be started by its engine");
  }
  std::unique_ptr<WorkerControl> control(new WorkerControl(admissions, sessions, status, std::move(exit)));
  grpc::ServerBuilder builder;
  builder.RegisterService(&control->worker_);
  builder.RegisterService(&control->admin_);
  control->server_ = builder.BuildAndStart();
  if (!control->server_) return absl::InternalError("cannot start the server for the engine");
  grpc::AddInsecureChannelFromFd(control->server_.get(), fd);
  return control;
}

WorkerControl::~WorkerControl() {
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

}  // namespace tt::server
