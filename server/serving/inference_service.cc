#include "server/serving/inference_service.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "server/rpc/engine_service.h"
#include "server/rpc/unary.h"

namespace tt::server {
namespace {

using namespace inference;  // NOLINT: the messages of the calls below

bool is_local(const grpc::ServerContext& context) {
  const std::string address = address_of(context.peer());
  return address == "unix" || address == "127.0.0.1";
}

// When the request's time ends, and whether its client has gone.
InferRequest limits_of(const grpc::ServerContext& context) {
  InferRequest limits;
  const auto left = context.deadline() - std::chrono::system_clock::now();
  constexpr std::chrono::hours kForever{24};
  if (context.deadline() != std::chrono::system_clock::time_point::max() && left < kForever) {
    limits.deadline = std::chrono::steady_clock::now() + left;
  }
  limits.is_cancelled = [&context] { return context.IsCancelled(); };
  return limits;
}

}  // namespace

template <typename Request, typename Reply>
void InferenceService::add(
    int index, Right right,
    std::function<absl::Status(const Principal&, const grpc::ServerContext&, const Request&, Reply*)> run,
    size_t request_bytes) {
  const auto check = [this, right](const grpc::ServerContext& context) {
    return server_.caller(credentials_of(context), right).status();
  };
  const auto handle = [this, right, run = std::move(run)](grpc::ServerContext* context, const Request* request,
                                                          Reply* reply) {
    const absl::StatusOr<Principal> caller = server_.caller(credentials_of(*context), right);
    if (!caller.ok()) return to_grpc(caller.status());
    return to_grpc(run(*caller, *context, *request, reply));
  };
  RequestLimits limits;
  if (request_bytes != 0) limits = {request_bytes, CallAdmission::kChunkTimeout};
  MarkMethodStreamed(index,
                     unary_handler<Request, Reply>(admission_, CallAdmission::Kind::kInference, check, handle, limits));
}

// In the order of the service's declaration, because gRPC identifies methods by index.
InferenceService::InferenceService(InferenceServer& server, CallAdmission& admission)
    : server_(server), admission_(admission) {
  using Context = grpc::ServerContext;
  add<ServerLiveRequest, ServerLiveResponse>(0, Right::kNone,
                                             [](const auto&, const Context&, const auto&, auto* reply) {
                                               reply->set_live(true);
                                               return absl::OkStatus();
                                             });
  add<ServerReadyRequest, ServerReadyResponse>(1, Right::kNone,
                                               [this](const auto&, const Context&, const auto&, auto* reply) {
                                                 reply->set_ready(server_.ready());
                                                 return absl::OkStatus();
                                               });
  add<ModelReadyRequest, ModelReadyResponse>(
      2, Right::kInfer, [this](const auto& caller, const Context&, const auto& request, auto* reply) {
        reply->set_ready(server_.ready(caller, request.name(), request.version()));
        return absl::OkStatus();
      });
  add<ServerMetadataRequest, ServerMetadataResponse>(3, Right::kInfer,
                                                     [this](const auto&, const Context&, const auto&, auto* reply) {
                                                       server_.describe(reply);
                                                       return absl::OkStatus();
                                                     });
  // Calls that only need the request, and fill the reply.
  const auto describe = [this](const auto& caller, const Context&, const auto& request, auto* reply) {
    return server_.describe(caller, request, reply);
  };
  add<ModelMetadataRequest, ModelMetadataResponse>(4, Right::kInfer, describe);
  add<ModelInferRequest, ModelInferResponse>(
      5, Right::kInfer,
      [this](const auto& caller, const Context& context, const auto& request, auto* reply) {
        return infer(caller, context, request, reply);
      },
      server_.options().request_bytes);
  // 6 is ModelStreamInfer
  add<ModelConfigRequest, ModelConfigResponse>(7, Right::kInfer, describe);
  add<ModelStatisticsRequest, ModelStatisticsResponse>(8, Right::kInfer, describe);
  add<RepositoryIndexRequest, RepositoryIndexResponse>(9, Right::kInfer, describe);
  add<RepositoryModelLoadRequest, RepositoryModelLoadResponse>(
      10, Right::kManage,
      [this](const auto& caller, const Context&, const auto& request, auto*) { return server_.load(caller, request); },
      2 * ModelSettings::kMaxBytes);
  add<RepositoryModelUnloadRequest, RepositoryModelUnloadResponse>(
      11, Right::kManage, [this](const auto& caller, const Context&, const auto& request, auto*) {
        return server_.unload(caller, request);
      });
  add<SystemSharedMemoryStatusRequest, SystemSharedMemoryStatusResponse>(12, Right::kInfer, describe);
  add<SystemSharedMemoryRegisterRequest, SystemSharedMemoryRegisterResponse>(
      13, Right::kInfer, [this](const auto& caller, const Context& context, const auto& request, auto*) {
        return server_.add(caller, is_local(context), request);
      });
  add<SystemSharedMemoryUnregisterRequest, SystemSharedMemoryUnregisterResponse>(
      14, Right::kInfer, [this](const auto& caller, const Context&, const auto& request, auto*) {
        return server_.remove(caller, request);
      });
  add<CudaSharedMemoryStatusRequest, CudaSharedMemoryStatusResponse>(
      15, Right::kInfer, [](const auto&, const Context&, const auto&, auto*) { return absl::OkStatus(); });
  add<CudaSharedMemoryRegisterRequest, CudaSharedMemoryRegisterResponse>(
      16, Right::kInfer, [](const auto&, const Context&, const auto&, auto*) {
        return absl::UnimplementedError(
            "[CudaSharedMemoryRegister] this server does not map other processes' GPU memory; use system shared memory "
            "or send the bytes");
      });
  add<CudaSharedMemoryUnregisterRequest, CudaSharedMemoryUnregisterResponse>(
      17, Right::kInfer, [](const auto&, const Context&, const auto&, auto*) { return absl::OkStatus(); });
  const auto settings = [this](const auto&, const Context&, const auto& request, auto* reply) {
    return server_.describe(request, reply);
  };
  add<TraceSettingRequest, TraceSettingResponse>(18, Right::kManage, settings);
  add<LogSettingsRequest, LogSettingsResponse>(19, Right::kManage, settings);
}

absl::Status InferenceService::infer(const Principal& caller, const grpc::ServerContext& context,
                                     const ModelInferRequest& request, ModelInferResponse* reply) {
  const absl::StatusOr<InferenceServer::Inflight> inflight = server_.begin(request.ByteSizeLong());
  if (!inflight.ok()) return inflight.status();
  return server_.infer(caller, request, limits_of(context), reply);
}

grpc::Status InferenceService::ModelStreamInfer(
    grpc::ServerContext* context, grpc::ServerReaderWriter<ModelStreamInferResponse, ModelInferRequest>* stream) {
  absl::StatusOr<Principal> caller = server_.caller(credentials_of(*context), Right::kInfer);
  if (!caller.ok()) return admission_.refuse(*context, caller.status());
  const absl::StatusOr<CallAdmission::Slot> slot = admission_.admit(CallAdmission::Kind::kInference, *context);
  if (!slot.ok()) return admission_.refuse(*context, slot.status());
  ModelInferRequest request;
  while (stream->Read(&request)) {
    caller = server_.caller(credentials_of(*context), Right::kInfer);  // rights may have ended
    if (!caller.ok()) return admission_.refuse(*context, caller.status());
    absl::Status status;
    const uint64_t bytes = request.ByteSizeLong();
    if (bytes > server_.options().request_bytes) {
      status = absl::ResourceExhaustedError("[ModelStreamInfer] the request is too large");
    } else if (const auto inflight = server_.begin(bytes); !inflight.ok()) {
      status = inflight.status();
    } else {
      status = server_.stream(*caller, request, limits_of(*context), [&](const ModelInferResponse& reply) {
        ModelStreamInferResponse response;
        *response.mutable_infer_response() = reply;
        return stream->Write(response);
      });
    }
    if (status.ok()) continue;
    ModelStreamInferResponse response;
    response.set_error_message(std::string(status.message()));
    response.mutable_infer_response()->set_id(request.id());
    response.mutable_infer_response()->set_model_name(request.model_name());
    response.mutable_infer_response()->set_model_version(request.model_version());
    if (!stream->Write(response)) break;
  }
  return grpc::Status::OK;
}

}  // namespace tt::server
