#include "client/inference.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/mutex.h"
#include "client/connection/address.h"
#include "client/connection/busy_retry.h"
#include "client/connection/channel.h"
#include "client/connection/metadata.h"
#include "client/transport/call_events.h"
#include "engine/schema/error.h"
#include "inference/grpc_service.grpc.pb.h"
#include "proto/default_socket.h"
#include "teletensor/v1/model.grpc.pb.h"

namespace tt::client {
namespace {

using inference::GRPCInferenceService;
using teletensor::v1::Models;

constexpr double kQuerySeconds = 10;  // of calls that no model takes part in

ErrorKind kind_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::OUT_OF_RANGE: return ErrorKind::kValue;
    case grpc::StatusCode::UNIMPLEMENTED: return ErrorKind::kNotImplemented;
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED: return ErrorKind::kPermission;
    case grpc::StatusCode::DEADLINE_EXCEEDED: return ErrorKind::kConnection;
    default: return ErrorKind::kRuntime;
  }
}

std::string resolve_address(const std::string& given) {
  if (!given.empty()) return given;
  const char* named = std::getenv("TELETENSOR_ADDRESS");
  return named && *named ? named : "unix:" + default_socket();
}

}  // namespace

struct Inference::Impl {
  // The services over one connection.
  struct Stubs {
    explicit Stubs(const std::shared_ptr<grpc::Channel>& channel) : inference(channel), models(channel) {}
    GRPCInferenceService::Stub inference;
    Models::Stub models;
    GRPCInferenceService::Stub& of(const GRPCInferenceService::Stub*) { return inference; }
    Models::Stub& of(const Models::Stub*) { return models; }
  };

  Address address;
  std::string token;
  mutable Mutex mutex;
  mutable std::shared_ptr<Stubs> stubs ABSL_GUARDED_BY(mutex);  // null: not connected

  template <typename Stub, typename Request, typename Reply>
  using Method = std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> (Stub::*)(grpc::ClientContext*, const Request&,
                                                                                   grpc::CompletionQueue*);

  std::shared_ptr<Stubs> connected() const {
    MutexLock lock(mutex);
    if (stubs) return stubs;
    absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = open_channel(address);
    check(ErrorKind::kConnection, channel.ok(), "[inference] no answer from the engine at ", address.text, ": ",
          channel.status().message());
    return stubs = std::make_shared<Stubs>(*channel);
  }
  void disconnect(const std::shared_ptr<Stubs>& failed) const {
    MutexLock lock(mutex);
    if (stubs == failed) stubs = nullptr;
  }

  // Whether the engine answers over this connection.
  bool is_alive(Stubs& connection) const {
    inference::ServerLiveResponse reply;
    auto start = [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
      return connection.inference.AsyncServerLive(context, inference::ServerLiveRequest(), queue);
    };
    return call_unary(
               std::chrono::milliseconds(2000), [](grpc::ClientContext&) {}, start, &reply)
        .ok();
  }

  template <typename Stub, typename Request, typename Reply>
  Reply call(Method<Stub, Request, Reply> method, const Request& request, double seconds) const {
    check(ErrorKind::kValue, std::isfinite(seconds) && seconds > 0 && seconds < 1e9,
          "[inference] expected a positive number of seconds, got ", seconds);
    const std::shared_ptr<Stubs> stub = connected();
    auto prepare = [&](grpc::ClientContext& context) {
      if (!token.empty()) add_metadata(context, "authorization", "Bearer " + token);
    };
    auto start = [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
      return (stub->of(static_cast<const Stub*>(nullptr)).*method)(context, request, queue);
    };
    Reply reply;
    BusyRetry retry(std::chrono::milliseconds(std::llround(seconds * 1000)));
    grpc::Status status;
    do {
      status = call_unary(retry.left(), prepare, start, &reply);
      if (status.ok()) return reply;
    } while (BusyRetry::is_busy(status.error_code() == grpc::StatusCode::UNAVAILABLE, status.error_message()) &&
             retry.pause());
    check(ErrorKind::kNotImplemented,
          status.error_code() != grpc::StatusCode::UNIMPLEMENTED || status.error_message() != "unknown method",
          "[inference] the engine at ", address.text,
          " serves no models. That requires a teletensord with --models; one ",
          "with --isolate=principal or --engines cannot have it, and opens sessions in processes that have not either");
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE) {
      fail(kind_of(status.error_code()), "[inference] ", status.error_message());
    }
    check(ErrorKind::kRuntime, !is_alive(*stub), "[inference] ", status.error_message());  // the engine's answer
    disconnect(stub);
    const std::string why = explain_failure(address);
    fail(ErrorKind::kConnection, "[inference] ", address.text, ": ", why.empty() ? status.error_message() : why);
  }
};

Inference::Inference(const std::string& address, const std::string& token, const TrustOptions& trust)
    : impl_(std::make_unique<Impl>()) {
  impl_->address = parse_address(resolve_address(address));
  choose_trust(trust, &impl_->address);
  impl_->token = find_token(token);
}

Inference::~Inference() = default;

inference::ModelInferResponse Inference::infer(const inference::ModelInferRequest& request, double seconds) const {
  return impl_->call(&GRPCInferenceService::Stub::AsyncModelInfer, request, seconds);
}

inference::ModelMetadataResponse Inference::metadata(const std::string& model, const std::string& version) const {
  inference::ModelMetadataRequest request;
  request.set_name(model);
  request.set_version(version);
  return impl_->call(&GRPCInferenceService::Stub::AsyncModelMetadata, request, kQuerySeconds);
}

inference::ModelConfigResponse Inference::config(const std::string& model, const std::string& version) const {
  inference::ModelConfigRequest request;
  request.set_name(model);
  request.set_version(version);
  return impl_->call(&GRPCInferenceService::Stub::AsyncModelConfig, request, kQuerySeconds);
}

inference::ModelStatisticsResponse Inference::statistics(const std::string& model, const std::string& version) const {
  inference::ModelStatisticsRequest request;
  request.set_name(model);
  request.set_version(version);
  return impl_->call(&GRPCInferenceService::Stub::AsyncModelStatistics, request, kQuerySeconds);
}

inference::RepositoryIndexResponse Inference::index() const {
  return impl_->call(&GRPCInferenceService::Stub::AsyncRepositoryIndex, inference::RepositoryIndexRequest(),
                     kQuerySeconds);
}

void Inference::load(const std::string& model, double seconds) const {
  inference::RepositoryModelLoadRequest request;
  request.set_model_name(model);
  impl_->call(&GRPCInferenceService::Stub::AsyncRepositoryModelLoad, request, seconds);
}

void Inference::unload(const std::string& model, double seconds) const {
  inference::RepositoryModelUnloadRequest request;
  request.set_model_name(model);
  impl_->call(&GRPCInferenceService::Stub::AsyncRepositoryModelUnload, request, seconds);
}

int64_t Inference::publish(const teletensor::v1::PublishModelRequest& request, double seconds) const {
  return impl_->call(&Models::Stub::AsyncPublish, request, seconds).version();
}

void Inference::withdraw(const std::string& model, int64_t version, double seconds) const {
  teletensor::v1::WithdrawModelRequest request;
  request.set_name(model);
  request.set_version(version);
  impl_->call(&Models::Stub::AsyncWithdraw, request, seconds);
}

const std::string& Inference::address() const { return impl_->address.text; }

}  // namespace tt::client
