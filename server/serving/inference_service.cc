#include "server/serving/inference_service.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/rpc/engine_service.h"
#include "server/rpc/unary.h"

namespace tt::server {
namespace {

constexpr std::chrono::hours kIdle{24 * 365};  // of a stream between two requests

using namespace inference;  // NOLINT: the messages of the calls below

bool is_local(const grpc::ServerContext& context) {
  const std::string address = address_of(context.peer());
  return address == "unix" || address == "127.0.0.1";
}

// Who is charged for requests and answers.
std::string caller_of(const grpc::ServerContext& context, const Principal& caller) {
  return InferenceServer::charged_caller(caller, address_of(context.peer()));
}

// Where a request comes from, when its time ends, whether its client has gone, and how large its classes may be.
InferRequest limits_of(const grpc::ServerContext& context, const InferenceServer& server) {
  InferRequest limits;
  limits.address = address_of(context.peer());
  limits.class_bytes = server.options().request_bytes;
  const auto left = context.deadline() - std::chrono::system_clock::now();
  constexpr std::chrono::hours kForever{24};
  if (context.deadline() != std::chrono::system_clock::time_point::max() && left < kForever) {
    limits.deadline = std::chrono::steady_clock::now() + left;
  }
  limits.is_cancelled = [&] {
    return context.IsCancelled() || !server.caller(credentials_of(context), InferenceServer::Right::kInfer).ok();
  };
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
  // Declares that the message is compressed so: gRPC sends it as it is.
  void set_coding(ContentCoding coding) { reader()->buffer_in->data.raw.compression = compression_of(coding); }
  static grpc_compression_algorithm compression_of(ContentCoding coding) {
    return coding == ContentCoding::kGzip      ? GRPC_COMPRESS_GZIP
           : coding == ContentCoding::kDeflate ? GRPC_COMPRESS_DEFLATE
                                               : GRPC_COMPRESS_NONE;
  }
};

// The coding of the answers to a request of this coding: its own, as the client has shown that it uses it, or one that
// the metadata "accept-encoding" prefers. gRPC's clients always accept gzip and deflate (grpc-accept-encoding).
ContentCoding answer_coding(const grpc::ServerContext& context, ContentCoding request) {
  if (request == ContentCoding::kGzip || request == ContentCoding::kDeflate) return request;
  std::string accepted;
  const auto [first, last] = context.client_metadata().equal_range("accept-encoding");
  for (auto each = first; each != last; ++each) {
    absl::StrAppend(&accepted, absl::string_view(each->second.data(), each->second.size()), ",");
  }
  return accepted_coding(accepted);
}

// Bytes that gRPC sends, and what is kept as long as they.
struct Sent {
  std::string bytes;
  InferenceServer::Kept kept;
};

grpc::ByteBuffer buffer_of(std::string bytes, InferenceServer::Kept kept) {
  kept.charged.shrink(bytes.size());  // the message that it was made of is gone
  auto* sent = new Sent{std::move(bytes), std::move(kept)};
  const grpc::Slice slice(
      sent->bytes.data(), sent->bytes.size(), [](void* each) { delete static_cast<Sent*>(each); }, sent);
  return grpc::ByteBuffer(&slice, 1);
}

// The message of an answer to `caller`, compressed if there is room for that. `kept` counts the answer's memory.
// Clears `reply`.
grpc::ByteBuffer message_of(InferenceServer& server, ContentCoding coding, absl::string_view caller,
                            google::protobuf::Message* reply, InferenceServer::Kept kept) {
  std::string bytes = reply->SerializeAsString();
  reply->Clear();
  if (coding == ContentCoding::kIdentity) return buffer_of(std::move(bytes), std::move(kept));
  absl::StatusOr<InferenceServer::Inflight> inflight = server.begin(compressed_bound(bytes.size()), caller);
  std::string small = inflight.ok() ? compressed(coding, bytes) : "";
  if (small.empty() || small.size() >= bytes.size()) return buffer_of(std::move(bytes), std::move(kept));
  kept.charged = *std::move(inflight);
  grpc::ByteBuffer buffer = buffer_of(std::move(small), std::move(kept));
  MessageCoding(&buffer).set_coding(coding);
  return buffer;
}

// Replaces a compressed message by its contents, at most `max_bytes`, which are counted while `charged` exists.
absl::Status decompress(InferenceServer& server, ContentCoding coding, grpc::ByteBuffer* bytes, uint64_t max_bytes,
                        InferenceServer::Inflight* charged) {
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
  *bytes = buffer_of(*std::move(plain), {});
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

absl::StatusOr<CallAdmission::Holder> InferenceService::holder_of(const grpc::ServerContext& context,
                                                                  Right right) const {
  const absl::StatusOr<Principal> caller = server_.caller(credentials_of(context), right);
  if (!caller.ok()) return caller.status();
  return CallAdmission::holder_of(*caller, context);
}

template <typename Request, typename Reply>
void InferenceService::add(
    int index, Right right,
    std::function<absl::Status(const Principal&, const grpc::ServerContext&, const Request&, Reply*)> run,
    const RequestLimits& limits) {
  const auto check = [this, right](const grpc::ServerContext& context) { return holder_of(context, right); };
  const auto handle = [this, right, max_bytes = limits.bytes, run = std::move(run)](
                          grpc::ServerContext* context, grpc::ByteBuffer* bytes, grpc::ByteBuffer* reply) {
    const absl::StatusOr<Principal> caller = server_.caller(credentials_of(*context), right);
    if (!caller.ok()) return to_grpc(caller.status());
    InferenceServer::Inflight charged;
    const ContentCoding coding = MessageCoding(bytes).coding();
    absl::Status status = decompress(server_, coding, bytes, max_bytes, &charged);
    Request request;
    if (status.ok()) status = parse_request(bytes, &request);
    if (!status.ok()) return admission_.refuse(*context, status);
    Reply message;
    status = run(*caller, *context, request, &message);
    InferenceServer::Inflight answered;
    const std::string charged_caller = caller_of(*context, *caller);
    // The message and its serialized form. Small ones are always sent: probes succeed while memory is exhausted.
    constexpr uint64_t kSmall = 4096, kCopies = 2;
    if (const uint64_t size = message.ByteSizeLong(); status.ok() && size > kSmall) {
      status = server_.begin_answer(kCopies * size, &answered, 0, charged_caller);
    }
    if (status.ok()) {
      *reply = answer(context, answer_coding(*context, coding), charged_caller, &message, {std::move(answered), {}});
    }
    return to_grpc(status);
  };
  // Probes, which everybody may send, neither take the places of inference nor show that a peer has a token.
  const bool is_probe = right == Right::kNone;
  RequestLimits own = limits;
  own.authenticates = !is_probe;
  const auto kind = is_probe ? CallAdmission::Kind::kReflection : CallAdmission::Kind::kInference;
  MarkMethodStreamed(index, unary_handler_of_bytes<grpc::ByteBuffer>(admission_, kind, check, handle, own));
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
  const RequestLimits limits{.bytes = server_.options().request_bytes,
                             .timeout = CallAdmission::kChunkTimeout,
                             .send_timeout = server_.options().send_timeout};
  const auto may_infer = [this](const Context& context) { return holder_of(context, Right::kInfer); };
  const auto infer = [this](Context* context, grpc::ByteBuffer* bytes, grpc::ByteBuffer* reply) {
    return this->infer(context, bytes, reply);
  };
  MarkMethodStreamed(5, unary_handler_of_bytes<grpc::ByteBuffer>(admission_, CallAdmission::Kind::kInference, may_infer,
                                                                 infer, limits));
  using Handler = grpc::internal::BidiStreamingHandler<InferenceService, grpc::ByteBuffer, grpc::ByteBuffer>;
  const auto serve = [](InferenceService* service, Context* context, Stream* stream) {
    return service->stream(context, stream);
  };
  MarkMethodStreamed(6, new Handler(serve, this));
  add<ModelConfigRequest, ModelConfigResponse>(7, Right::kInfer, describe);
  add<ModelStatisticsRequest, ModelStatisticsResponse>(8, Right::kInfer, describe);
  add<RepositoryIndexRequest, RepositoryIndexResponse>(9, Right::kInfer, describe);
  add<RepositoryModelLoadRequest, RepositoryModelLoadResponse>(
      10, Right::kManage,
      [this](const auto& caller, const Context& context, const auto& request, auto*) {
        return server_.load(caller, request, [this, &context] {
          return !context.IsCancelled() && server_.caller(credentials_of(context), Right::kManage).ok();
        });
      },
      {.bytes = 2 * ModelSettings::kMaxBytes});
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

grpc::ByteBuffer InferenceService::answer(grpc::ServerContext* context, ContentCoding coding, absl::string_view caller,
                                          google::protobuf::Message* reply, InferenceServer::Kept kept) {
  grpc::ByteBuffer message = message_of(server_, coding, caller, reply, std::move(kept));
  const ContentCoding own = MessageCoding(&message).coding();
  if (own != ContentCoding::kIdentity) context->set_compression_algorithm(MessageCoding::compression_of(own));
  return message;
}

absl::Status InferenceService::reserve(absl::Span<const InferOutput> outputs, absl::string_view caller,
                                       InferenceServer::Inflight* charged) {
  // The message and its serialized form.
  constexpr uint64_t kCopies = 2;
  const uint64_t most = server_.options().request_bytes;
  uint64_t bytes = 0, more = 0;
  for (const InferOutput& output : outputs) (output.is_bound ? more : bytes) += output.size;
  if (bytes <= most) {
    return server_.begin_answer(kCopies * bytes, charged, kCopies * std::min(more, most - bytes), caller);
  }
  return absl::OutOfRangeError(
      absl::StrCat("[ModelInfer] expected an answer of at most ", most, " bytes, got one of ", bytes));
}

grpc::Status InferenceService::infer(grpc::ServerContext* context, grpc::ByteBuffer* bytes, grpc::ByteBuffer* reply) {
  const absl::StatusOr<Principal> caller = server_.caller(credentials_of(*context), Right::kInfer);
  if (!caller.ok()) return to_grpc(caller.status());
  InferenceServer::Inflight charged;
  const ContentCoding coding = MessageCoding(bytes).coding();
  absl::Status status = decompress(server_, coding, bytes, server_.options().request_bytes, &charged);
  if (!status.ok()) return to_grpc(status);
  InferRequest limits = limits_of(*context, server_);
  InferenceServer::Inflight answered;
  const std::string charged_caller = InferenceServer::charged_caller(*caller, limits.address);
  const auto inflight = server_.begin(parsed_bytes(*bytes), charged_caller, InflightUse::kRequest);
  if (!inflight.ok()) return to_grpc(inflight.status());
  ModelInferRequest request;
  if (status = parse_request(bytes, &request); !status.ok()) return to_grpc(status);
  charged = {};  // parsing clears `bytes`
  limits.reserve = [&](absl::Span<const InferOutput> outputs) { return reserve(outputs, charged_caller, &answered); };
  ModelInferResponse message;
  ModelShares::Place place;
  status = server_.infer(*caller, request, std::move(limits), &message, &place);
  if (status.ok()) {
    *reply = answer(context, answer_coding(*context, coding), charged_caller, &message,
                    {std::move(answered), std::move(place)});
  }
  return to_grpc(status);
}

absl::Status InferenceService::answer_one(const Principal& caller, StreamedCall* call, grpc::ByteBuffer* bytes,
                                          ModelInferRequest* request) {
  if (bytes->Length() > server_.options().request_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("[ModelStreamInfer] expected a request of at most ",
                                                     server_.options().request_bytes, " bytes, got ", bytes->Length()));
  }
  InferenceServer::Inflight charged;
  const ContentCoding coding = MessageCoding(bytes).coding();
  if (!call->coding) call->coding = answer_coding(*call->context, coding);
  absl::Status status = decompress(server_, coding, bytes, server_.options().request_bytes, &charged);
  if (!status.ok()) return status;
  const auto inflight = server_.begin(parsed_bytes(*bytes), call->caller, InflightUse::kRequest);
  if (!inflight.ok()) return inflight.status();
  if (status = parse_request(bytes, request); !status.ok()) return status;
  charged = {};  // parsing clears `bytes`
  InferRequest limits = limits_of(*call->context, server_);
  InferenceServer::Inflight answered;
  limits.reserve = [&](absl::Span<const InferOutput> outputs) { return reserve(outputs, call->caller, &answered); };
  return server_.stream(caller, *request, std::move(limits), [&](ModelInferResponse* reply) {
    ModelStreamInferResponse response;
    response.mutable_infer_response()->Swap(reply);
    return send(call, &response, std::move(answered));
  });
}

bool InferenceService::send(StreamedCall* call, ModelStreamInferResponse* response, InferenceServer::Inflight charged) {
  // The header that names the coding precedes the first message.
  const ContentCoding coding = call->coding.value_or(ContentCoding::kIdentity);
  if (!call->has_sent && coding != ContentCoding::kIdentity) {
    call->context->set_compression_algorithm(MessageCoding::compression_of(coding));
  }
  call->has_sent = true;
  const grpc::ByteBuffer message = message_of(server_, coding, call->caller, response, {std::move(charged), {}});
  // A client that does not read would keep the answer's memory from all others.
  const CallAdmission::Deadline deadline(admission_, call->context->c_call(), CallAdmission::Awaited::kAnswer,
                                         CallAdmission::time_to_send(server_.options().send_timeout, message.Length()));
  return call->stream->Write(message, grpc::WriteOptions().set_no_compression());
}

grpc::Status InferenceService::stream(grpc::ServerContext* context, Stream* stream) {
  absl::StatusOr<Principal> caller = server_.caller(credentials_of(*context), Right::kInfer);
  if (!caller.ok()) return admission_.refuse(*context, caller.status());
  admission_.authenticated(context->peer());
  absl::StatusOr<CallAdmission::Slot> slot =
      admission_.admit(CallAdmission::Kind::kInference, CallAdmission::holder_of(*caller, *context));
  if (!slot.ok()) return admission_.refuse(*context, slot.status());
  const absl::StatusOr<ModelShares::Place> place = server_.begin_stream(caller_of(*context, *caller));
  if (!place.ok()) return admission_.refuse(*context, place.status());
  StreamedCall call{context, stream, caller_of(*context, *caller)};
  grpc::ByteBuffer bytes;
  const auto read = [&] {  // a stream without a request may give way
    const CallAdmission::Deadline waiting(admission_, context->c_call(), CallAdmission::Awaited::kRequest, kIdle,
                                          &*slot);
    return stream->Read(&bytes);
  };
  while (read() && slot->is_held()) {
    caller = server_.caller(credentials_of(*context), Right::kInfer);  // rights may have ended
    if (!caller.ok()) return admission_.refuse(*context, caller.status());
    ModelInferRequest request;
    const absl::Status status = answer_one(*caller, &call, &bytes, &request);
    if (status.ok()) continue;
    ModelStreamInferResponse response;
    response.set_error_message(std::string(status.message()));
    response.mutable_infer_response()->set_id(request.id());
    response.mutable_infer_response()->set_model_name(request.model_name());
    response.mutable_infer_response()->set_model_version(request.model_version());
    if (!send(&call, &response, {})) break;
  }
  return grpc::Status::OK;
}

}  // namespace tt::server
