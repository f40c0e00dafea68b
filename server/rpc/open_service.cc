#include "server/rpc/open_service.h"

#include <string>

namespace tt::server {
namespace {

// grpc.health.v1.HealthCheckResponse{status: SERVING}.
constexpr char kServing[] = {0x08, 0x01};

grpc::ByteBuffer serving() {
  grpc::Slice slice(kServing, sizeof kServing);
  return grpc::ByteBuffer(&slice, 1);
}

class UnimplementedReactor final : public grpc::ServerGenericBidiReactor {
 public:
  UnimplementedReactor() { Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "unknown method")); }
  void OnDone() override { delete this; }
};

class HealthCheckReactor final : public grpc::ServerGenericBidiReactor {
 public:
  HealthCheckReactor() { StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK); }
  void OnDone() override { delete this; }

 private:
  const grpc::ByteBuffer answer_ = serving();
};

// Answers once, and stays open until the client disconnects or the engine shuts down.
class HealthWatchReactor final : public grpc::ServerGenericBidiReactor {
 public:
  HealthWatchReactor() { StartWrite(&answer_); }
  void OnCancel() override { Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }

 private:
  const grpc::ByteBuffer answer_ = serving();
};

}  // namespace

grpc::ServerGenericBidiReactor* OpenService::CreateReactor(grpc::GenericCallbackServerContext* context) {
  const std::string& method = context->method();
  if (method == "/grpc.health.v1.Health/Check") return new HealthCheckReactor;
  if (method == "/grpc.health.v1.Health/Watch") return new HealthWatchReactor;
  return new UnimplementedReactor;
}

}  // namespace tt::server
