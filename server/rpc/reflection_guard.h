// ReflectionGuard: admits calls of gRPC's reflection service, whose implementation is the library's.
//
// The service runs a thread per call and reads for as long as its client likes. So a call needs a token, unless
// reflection is open, and is within a quota and a time of its own.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include "server/rpc/auth.h"
#include "server/rpc/gate.h"

namespace tt::server {

class ReflectionGuard final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  // Both outlive the server.
  ReflectionGuard(const Auth& auth, bool open, Gate& gate) : auth_(auth), open_(open), gate_(gate) {}
  // Null, which costs the call nothing, for every other service.
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override;

 private:
  const Auth& auth_;
  const bool open_;
  Gate& gate_;
};

}  // namespace tt::server
