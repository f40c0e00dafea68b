#include "server/engine_service.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"
#include "server/convert.h"
#include "server/log.h"
#include "server/unary.h"

namespace tt::server {
namespace {

// The frame that a stream is parsed into, again and again: cleared messages keep their memory, so a warm session's
// frames are parsed without allocating.
class FrameBuffer {
 public:
  FrameBuffer() : frame_(google::protobuf::Arena::CreateMessage<v1::Frame>(&arena_)) {}

  v1::Frame* next() {
    inline_bytes_ += count_inline_bytes();
    if (inline_bytes_ < kMaxKept && arena_.SpaceUsed() < kMaxKept) {
      frame_->Clear();
      return frame_;
    }
    // Inline bytes and lists are not reused by Clear: start over before they pile up.
    inline_bytes_ = 0;
    arena_.Reset();
    return frame_ = google::protobuf::Arena::CreateMessage<v1::Frame>(&arena_);
  }

 private:
  static constexpr uint64_t kMaxKept = 2 << 20;

  uint64_t count_inline_bytes() const {
    uint64_t bytes = 0;
    for (const v1::Instruction& instruction : frame_->instructions()) {
      for (const v1::Argument& arg : instruction.args()) bytes += arg.has_characters() ? arg.characters().size() : 0;
    }
    return bytes;
  }

  google::protobuf::Arena arena_;
  v1::Frame* frame_;
  uint64_t inline_bytes_ = 0;  // of strings, which lie outside the arena
};

absl::StatusOr<Device> device_of(const v1::UploadChunk& chunk) try {
  return decode_device(chunk.device());
} catch (const Error& error) {
  return to_status(error);
}

// The methods' places in the service's declaration, by which gRPC's service knows them.
constexpr int kHello = 0, kDownload = 3, kCancel = 4;

grpc::Status session_ended() { return grpc::Status(grpc::StatusCode::NOT_FOUND, "the session has ended"); }

grpc::Status send_chunks(ByteSource& bytes, v1::DownloadChunk* chunk,
                         grpc::internal::WriterInterface<v1::DownloadChunk>* writer) {
  do {
    std::string* data = chunk->mutable_data();
    data->resize(std::min(bytes.left(), kStreamChunkBytes));
    bytes.read(data->data(), data->size());
    if (!writer->Write(*chunk)) return grpc::Status::CANCELLED;
    chunk->clear_tensor();
  } while (bytes.left() != 0);
  return grpc::Status::OK;
}

grpc::Status drain(grpc::ServerReader<v1::UploadChunk>* reader, Upload& upload, v1::UploadChunk* chunk) {
  do {
    if (absl::Status status = upload.append(chunk->data()); !status.ok()) return to_grpc(status);
  } while (reader->Read(chunk));
  return grpc::Status::OK;
}

}  // namespace

absl::string_view metadata(const grpc::ServerContext& context, const char* name) {
  auto found = context.client_metadata().find(name);
  if (found == context.client_metadata().end()) return {};
  return {found->second.data(), found->second.size()};
}

grpc::Status to_grpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

EngineService::EngineService(const Auth& auth, Sessions& sessions, Gate& gate)
    : auth_(auth), sessions_(sessions), gate_(gate) {
  using grpc::ServerContext;
  auto has_token = [this](const ServerContext& context) { return auth_.check(metadata(context, "authorization")); };
  MarkMethodStreamed(kHello, unary_handler<v1::HelloRequest, v1::HelloReply>(
                                 gate_, Gate::Kind::kHello, has_token,
                                 [this](ServerContext* context, const v1::HelloRequest* request,
                                        v1::HelloReply* reply) { return Hello(context, request, reply); }));
  auto has_session = [this](const ServerContext& context) {
    bool found = sessions_.find(metadata(context, "teletensor-session")) != nullptr;
    return found ? absl::OkStatus() : absl::NotFoundError("the session has ended");
  };
  MarkMethodStreamed(kCancel, unary_handler<v1::CancelRequest, v1::CancelReply>(
                                  gate_, Gate::Kind::kRequest, has_session,
                                  [this](ServerContext* context, const v1::CancelRequest* request,
                                         v1::CancelReply* reply) { return Cancel(context, request, reply); }));
  using DownloadStream = grpc::ServerSplitStreamer<v1::DownloadRequest, v1::DownloadChunk>;
  MarkMethodStreamed(kDownload, new grpc::internal::SplitServerStreamingHandler<v1::DownloadRequest, v1::DownloadChunk>(
                                    [this](ServerContext* context, DownloadStream* stream) {
                                      return serve_download(context, stream);
                                    }));
}

std::shared_ptr<Session> EngineService::session_of(grpc::ServerContext& context, grpc::Status* status) const {
  std::shared_ptr<server::Session> session = sessions_.find(metadata(context, "teletensor-session"));
  if (!session) *status = gate_.refuse(context, absl::NotFoundError("the session has ended"));
  return session;
}

absl::StatusOr<Gate::Slot> EngineService::admit(grpc::ServerContext& context, Gate::Kind kind,
                                                const server::Session& session) {
  gate_.authenticated(context.peer());
  return gate_.admit(kind, absl::StrCat("session ", session.id()));
}

grpc::Status EngineService::Hello(grpc::ServerContext*, const v1::HelloRequest* request, v1::HelloReply* reply) {
  return to_grpc(sessions_.hello(*request, reply));
}

grpc::Status EngineService::Session(grpc::ServerContext* context,
                                    grpc::ServerReaderWriter<v1::Reply, v1::Frame>* stream) {
  grpc::Status status;
  auto session = session_of(*context, &status);
  if (!session) return status;
  absl::StatusOr<Gate::Slot> slot = admit(*context, Gate::Kind::kStream, *session);
  if (!slot.ok()) return gate_.refuse(*context, slot.status());
  uint64_t attachment = sessions_.attach(*session, [context] { context->TryCancel(); });
  if (attachment == 0) return session_ended();
  FrameBuffer buffer;
  v1::Reply reply;
  for (v1::Frame* frame = buffer.next(); stream->Read(frame); frame = buffer.next()) {
    reply.Clear();
    session->execute(*frame, &reply);
    bool sent = stream->Write(reply);
    if (reply.has_fault()) {
      static LogLimit limit;
      limit.warn(absl::StrCat("session ", session->id(), ": ", reply.fault().message()));
      status = to_grpc(fault_status(reply.fault()));
    }
    if (session->over() || !sent) break;
  }
  if (session->over()) {
    sessions_.end(*session);
    return status;
  }
  sessions_.detach(*session, attachment);
  // A client that still listens has sent bytes that are no frame, or has forgotten to close.
  return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "the stream ended without a closing frame");
}

grpc::Status EngineService::Upload(grpc::ServerContext* context, grpc::ServerReader<v1::UploadChunk>* reader,
                                   v1::UploadReply* reply) {
  grpc::Status status;
  auto session = session_of(*context, &status);
  if (!session) return status;
  absl::StatusOr<Gate::Slot> slot = admit(*context, Gate::Kind::kTransfer, *session);
  if (!slot.ok()) return gate_.refuse(*context, slot.status());
  v1::UploadChunk chunk;
  {
    Gate::Deadline deadline(gate_, context->c_call(), Gate::kChunkPatience);
    if (!reader->Read(&chunk)) return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "an upload has a first chunk");
  }
  absl::StatusOr<Device> device = device_of(chunk);
  if (!device.ok()) return to_grpc(device.status());
  auto upload = session->begin_upload(chunk.transfer(), chunk.total_bytes(), *device);
  if (!upload.ok()) return to_grpc(upload.status());
  if (chunk.through_shared_memory()) {
    auto segment = session->segment();
    if (!segment) return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "the session shares no memory");
    status = to_grpc(segment->receive(**upload, [&] { return !context->IsCancelled() && !session->over(); }));
  } else {
    status = drain(reader, **upload, &chunk);
  }
  if (status.ok() && (*upload)->left() != 0) {
    status = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "the upload ended before its last byte");
  }
  reply->set_bytes((*upload)->bytes() - (*upload)->left());
  return status;
}

grpc::Status EngineService::serve_download(grpc::ServerContext* context,
                                           grpc::ServerSplitStreamer<v1::DownloadRequest, v1::DownloadChunk>* stream) {
  grpc::Status status;
  auto session = session_of(*context, &status);
  if (!session) return status;
  absl::StatusOr<Gate::Slot> slot = admit(*context, Gate::Kind::kTransfer, *session);
  if (!slot.ok()) return gate_.refuse(*context, slot.status());
  v1::DownloadRequest request;
  absl::Status read = read_request(gate_, *context, stream, &request);
  return read.ok() ? answer_download(context, &request, stream) : gate_.refuse(*context, read);
}

grpc::Status EngineService::answer_download(grpc::ServerContext* context, const v1::DownloadRequest* request,
                                            DownloadWriter* writer) {
  grpc::Status status;
  auto session = session_of(*context, &status);
  if (!session) return status;
  auto go_on = [&] { return !context->IsCancelled() && !session->over(); };
  auto download = session->begin_download(request->handle(), request->after(), go_on);
  if (!download.ok()) return to_grpc(download.status());
  auto segment = request->through_shared_memory() ? session->segment() : nullptr;
  if (request->through_shared_memory() && !segment) {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "the session shares no memory");
  }
  v1::DownloadChunk chunk;
  if (download->error) {
    *chunk.mutable_error() = *download->error;
    writer->Write(chunk);
    return grpc::Status::OK;
  }
  *chunk.mutable_tensor() = download->tensor;
  try {
    if (!segment) return send_chunks(*download->bytes, &chunk, writer);
    writer->Write(chunk);
    return to_grpc(segment->send(*download->bytes, go_on));
  } catch (const Error& error) {  // of a device that fails on the way
    return to_grpc(to_status(error));
  }
}

}  // namespace tt::server
