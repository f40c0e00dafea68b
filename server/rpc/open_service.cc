#include "server/rpc/open_service.h"

#include <atomic>
#include <optional>
#include <string>

namespace tt::server {
namespace {

constexpr size_t kMaxWatchBytes = size_t{64} << 10;
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

// Answers once, and stays open until the client disconnects or the engine shuts down, if the client has sent one small
// request and no more.
class HealthWatchReactor final : public grpc::ServerGenericBidiReactor {
 public:
  HealthWatchReactor(CallAdmission& admission, grpc_call* call)
      : deadline_(std::in_place, admission, call, CallAdmission::Awaited::kRequest, CallAdmission::kRequestTimeout) {
    StartWrite(&answer_);
    StartRead(&request_);
  }
  // `ok` is false at the end of the client's stream.
  void OnReadDone(bool ok) override {
    if (!ok) return deadline_.reset();
    if (++requests_ > 1 || request_.Length() > kMaxWatchBytes) {
      return finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "expected one request of a health watch"));
    }
    StartRead(&request_);
  }
  void OnCancel() override { finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }

 private:
  void finish(const grpc::Status& status) {
    if (!finished_.exchange(true)) Finish(status);
  }

  const grpc::ByteBuffer answer_ = serving();
  grpc::ByteBuffer request_;
  int requests_ = 0;
  std::atomic<bool> finished_{false};
  std::optional<CallAdmission::Deadline> deadline_;
};

}  // namespace

grpc::ServerGenericBidiReactor* OpenService::CreateReactor(grpc::GenericCallbackServerContext* context) {
  const std::string& method = context->method();
  if (method == "/grpc.health.v1.Health/Check") return new HealthCheckReactor;
  if (method == "/grpc.health.v1.Health/Watch") return new HealthWatchReactor(admission_, context->c_call());
  return new UnimplementedReactor;
}

}  // namespace tt::server
