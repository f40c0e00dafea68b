// WorkerControl: serves a worker's engine on the socket pair that the worker inherited.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "server/admin/admin_service.h"
#include "server/admin/status.h"
#include "server/audit.h"
#include "server/rpc/admissions.h"
#include "server/rpc/auth.h"
#include "server/rpc/call_admission.h"
#include "server/session/sessions.h"
#include "server/workers/worker_service.h"

namespace tt::server {

class WorkerControl {
 public:
  // Starts serving. Takes ownership of `fd`. Admin.Drain calls `exit`. All references must outlive the object.
  static absl::StatusOr<std::unique_ptr<WorkerControl>> start(int fd, Admissions& admissions, Sessions& sessions,
                                                              const EngineStatus& status, std::function<void()> exit);
  ~WorkerControl();  // ends all calls

 private:
  WorkerControl(Admissions& admissions, Sessions& sessions, const EngineStatus& status, std::function<void()> exit);

  // Only the engine has the other end, and it checks the rights of the principal that causes a call.
  const Auth auth_ = Auth::disabled();
  AuditLog audit_;  // the engine records its calls
  CallAdmission admission_;
  WorkerService worker_;
  AdminService admin_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tt::server
