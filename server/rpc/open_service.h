// OpenService: answers calls that need no token: gRPC's health checks and unknown methods.
//
// Uses gRPC's callback API, so that a call occupies no thread. The body of a call is not read, so a health check
// reports the state of the whole engine, whichever service its request names. A watch, which stays open, must send its
// request and end its stream within CallAdmission::kRequestTimeout, so that gRPC stores nothing for it. Thread-safe.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "server/rpc/call_admission.h"

namespace tt::server {

class OpenService final : public grpc::CallbackGenericService {
 public:
  // `admission` must outlive the server.
  explicit OpenService(CallAdmission& admission) : admission_(admission) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;

 private:
  CallAdmission& admission_;
};

}  // namespace tt::server
