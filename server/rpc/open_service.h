// OpenService: answers calls that need no token: gRPC's health checks and unknown methods.
//
// Uses gRPC's callback API, so that a call occupies no thread. The body of a call is not read, so a health check
// reports the state of the whole engine, whichever service its request names. Thread-safe.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

namespace tt::server {

class OpenService final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;
};

}  // namespace tt::server
