// OpenService: what the engine answers to anybody: gRPC's health checks, and that a method is unknown.
//
// Callback-style: a call holds no thread, whatever its peer does, and nothing of its body is read. So health is the
// engine's as a whole, whichever service a check names. Thread-safe.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

namespace tt::server {

class OpenService final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;
};

}  // namespace tt::server
