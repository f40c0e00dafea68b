#include "server/serving/inference_service.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

// How a message is compressed. gRPC leaves it so (server/daemon/listener.cc).
class MessageCoding : public grpc::ProtoBufferReader {
 public:
  explicit MessageCoding(grpc::ByteBuffer* bytes) : ProtoBufferReader(bytes) {}
  ContentCoding coding() {
    switch (reader()->buffer_in->data.raw.compression) {
      case GRPC_COMPRESS_NONE: return ContentCoding::kIdentity;
      case GRPC_COMPRESS_GZIP: return ContentCoding::kGzip;
      case GRPC_COMPRESS_DEFLATE: return ContentCoding::kDeflate;
      default: return ContentCoding::kUnknown;
    }
  }
};

// Replaces a compressed message by its contents, at most `max_bytes`, which are counted while `charged` exists.
absl::Status decompress(InferenceServer& server, grpc::ByteBuffer* bytes, uint64_t max_bytes,
                        InferenceServer::Inflight* charged) {
  const ContentCoding coding = MessageCoding(bytes).coding();
  if (coding == ContentCoding::kIdentity) return absl::OkStatus();
  if (coding == ContentCoding::kUnknown) {
    return absl::UnimplementedError("[v2] expected a request compressed with gzip or deflate");
  }
  std::vector<grpc::Slice> slices;
  if (!bytes->Dump(&slices).ok()) return absl::InternalError("[v2] internal error");
  std::vector<absl::string_view> parts;
  parts.reserve(slices.size());
  for (const grpc::Slice& slice : slices) {
    parts.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  absl::StatusOr<std::string> plain = server.decompress(coding, parts, max_bytes, charged);
  if (!plain.ok()) return plain.status();
  auto* owned = new std::string(*std::move(plain));
  const grpc::Slice slice(
      owned->data(), owned->size(), [](void* text) { delete static_cast<std::string*>(text); }, owned);
  *bytes = grpc::ByteBuffer(&slice, 1);
  return absl::OkStatus();
}

// An estimate of the memory that a ModelInferRequest takes once it is parsed. Its tensors' raw bytes take what they
// have; two bytes of anything else may become an object.
uint64_t parsed_bytes(const grpc::ByteBuffer& bytes) {
  using google::protobuf::internal::WireFormatLite;
  constexpr uint64_t kFactor = 40;
  grpc::ByteBuffer copy(bytes);  // of the references to its slices
  grpc::ProtoBufferReader reader(&copy);
  google::protobuf::io::CodedInputStream stream(&reader);
  uint64_t raw = 0;
  while (const uint32_t tag = stream.ReadTag()) {
    uint32_t size = 0;
    const bool is_raw = tag == WireFormatLite::MakeTag(ModelInferRequest::kRawInputContentsFieldNumber,
                                                       WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
    if (!is_raw) {
      if (!WireFormatLite::SkipField(&stream, tag)) break;
    } else if (!stream.ReadVarint32(&size) || !stream.Skip(static_cast<int>(size))) {
      break;
    } else {
      constexpr uint64_t kEach = 128;
      raw += size > kEach ? size : 0;  // an empty one is an object, too
    }
  }
  return raw + kFactor * (bytes.Length() - std::min<uint64_t>(raw, bytes.Length()));
}

}  // namespace

template <typename Request, typename Reply>
void InferenceService::add(
    int index, Right right,
    std::function<absl::Status(const Principal&, const grpc::ServerContext&, const Request&, Reply*)> run,
    const RequestLimits& limits) {
  const auto check = [this, right](const grpc::ServerContext& context) {
    return server_.caller(credentials_of(context), right).status();
  };
  const auto handle = [this, right, max_bytes = limits.bytes, run = std::move(run)](
                          grpc::ServerContext* context, grpc::ByteBuffer* bytes, Reply* reply) {
    const absl::StatusOr<Principal> caller = server_.caller(credentials_of(*context), right);
    if (!caller.ok()) return to_grpc(caller.status());
    InferenceServer::Inflight charged;
    absl::Status status = decompress(server_, bytes, max_bytes, &charged);
    Request request;
    if (status.ok()) status = parse_request(bytes, &request);
    if (!status.ok()) return admission_.refuse(*context, status);
    return to_grpc(run(*caller, *context, request, reply));
  };
  // Probes, which everybody may send, neither take the places of inference nor show that a peer has a token.
  const bool is_probe = right == Right::kNone;
  RequestLimits own = limits;
  own.authenticates = !is_probe;
  const auto kind = is_probe ? CallAdmission::Kind::kReflection : CallAdmission::Kind::kInference;
  MarkMethodStreamed(index, unary_handler_of_bytes<Reply>(admission_, kind, check, handle, own));
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
  const RequestLimits limits{server_.options().request_bytes, CallAdmission::kChunkTimeout};
  const auto may_infer = [this](const Context& context) {
    return server_.caller(credentials_of(context), Right::kInfer).status();
  };
  const auto infer = [this](Context* context, grpc::ByteBuffer* bytes, ModelInferResponse* reply) {
    return this->infer(context, bytes, reply);
  };
  MarkMethodStreamed(5, unary_handler_of_bytes<ModelInferResponse>(admission_, CallAdmission::Kind::kInference,
                                                                   may_infer, infer, limits));
  using Handler = grpc::internal::BidiStreamingHandler<InferenceService, grpc::ByteBuffer, ModelStreamInferResponse>;
  const auto serve = [](InferenceService* service, Context* context, Stream* stream) {
    return service->stream(context, stream);
  };
  MarkMethodStreamed(6, new Handler(serve, this));
  add<ModelConfigRequest, ModelConfigResponse>(7, Right::kInfer, describe);
  add<ModelStatisticsRequest, ModelStatisticsResponse>(8, Right::kInfer, describe);
  add<RepositoryIndexRequest, RepositoryIndexResponse>(9, Right::kInfer, describe);
  add<RepositoryModelLoadRequest, RepositoryModelLoadResponse>(
      10, Right::kManage,
      [this](const auto& caller, const Context&, const auto& request, auto*) { return server_.load(caller, request); },
      {2 * ModelSettings::kMaxBytes, CallAdmission::kRequestTimeout});
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

grpc::Status InferenceService::infer(grpc::ServerContext* context, grpc::ByteBuffer* bytes, ModelInferResponse* reply) {
  const absl::StatusOr<Principal> caller = server_.caller(credentials_of(*context), Right::kInfer);
  if (!caller.ok()) return to_grpc(caller.status());
  InferenceServer::Inflight charged;
  if (const absl::Status status = decompress(server_, bytes, server_.options().request_bytes, &charged); !status.ok()) {
    return to_grpc(status);
  }
  const absl::StatusOr<InferenceServer::Inflight> inflight = server_.begin(parsed_bytes(*bytes));
  if (!inflight.ok()) return to_grpc(inflight.status());
  ModelInferRequest request;
  if (const absl::Status parsed = parse_request(bytes, &request); !parsed.ok()) return to_grpc(parsed);
  return to_grpc(server_.infer(*caller, request, limits_of(*context), reply));
}

absl::Status InferenceService::answer(const Principal& caller, const grpc::ServerContext& context,
                                      grpc::ByteBuffer* bytes, Stream* stream, ModelInferRequest* request) {
  if (bytes->Length() > server_.options().request_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("[ModelStreamInfer] expected a request of at most ",
                                                     server_.options().request_bytes, " bytes, got ", bytes->Length()));
  }
  InferenceServer::Inflight charged;
  if (absl::Status status = decompress(server_, bytes, server_.options().request_bytes, &charged); !status.ok()) {
    return status;
  }
  const absl::StatusOr<InferenceServer::Inflight> inflight = server_.begin(parsed_bytes(*bytes));
  if (!inflight.ok()) return inflight.status();
  if (absl::Status parsed = parse_request(bytes, request); !parsed.ok()) return parsed;
  return server_.stream(caller, *request, limits_of(context), [&](const ModelInferResponse& reply) {
    ModelStreamInferResponse response;
    *response.mutable_infer_response() = reply;
    return stream->Write(response);
  });
}

grpc::Status InferenceService::stream(grpc::ServerContext* context, Stream* stream) {
  absl::StatusOr<Principal> caller = server_.caller(credentials_of(*context), Right::kInfer);
  if (!caller.ok()) return admission_.refuse(*context, caller.status());
  const absl::StatusOr<CallAdmission::Slot> slot = admission_.admit(CallAdmission::Kind::kInference, *context);
  if (!slot.ok()) return admission_.refuse(*context, slot.status());
  grpc::ByteBuffer bytes;
  while (stream->Read(&bytes)) {
    caller = server_.caller(credentials_of(*context), Right::kInfer);  // rights may have ended
    if (!caller.ok()) return admission_.refuse(*context, caller.status());
    ModelInferRequest request;
    const absl::Status status = answer(*caller, *context, &bytes, stream, &request);
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
