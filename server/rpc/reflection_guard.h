// ReflectionGuard: admits calls to gRPC's reflection service, which the gRPC library implements.
//
// The service uses one thread per call and reads as long as its client sends. Therefore a call needs a token, unless
// reflection is open, and has a separate quota and a time limit.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include "server/rpc/auth.h"
#include "server/rpc/call_admission.h"

namespace tt::server {

class ReflectionGuard final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  // `auth` and `admission` must outlive the server.
  ReflectionGuard(const Auth& auth, bool open, CallAdmission& admission)
      : auth_(auth), open_(open), admission_(admission) {}
  // Returns null, at no cost per call, for every other service.
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override;

 private:
  const Auth& auth_;
  const bool open_;
  CallAdmission& admission_;
};

}  // namespace tt::server
