// OpenService: answers calls that need no token: gRPC's health checks and unknown methods.
//
// Callback API: a call occupies no thread, whatever its peer does, and its body is not read. A health check therefore
// reports the whole engine, whichever service it names. Thread-safe.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

namespace tt::server {

class OpenService final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;
};

}  // namespace tt::server
