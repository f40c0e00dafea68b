#include "server/engine_service.h"

#include <algorithm>
#include <memory>

#include "google/protobuf/arena.h"
#include "server/convert.h"
#include "spdlog/spdlog.h"

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

// A stream that carries a session, from its beginning to its end, however that comes.
class Attachment {
 public:
  Attachment(Sessions& sessions, Session& session, grpc::ServerContext* context)
      : sessions_(sessions),
        session_(session),
        number_(sessions.attach(
            session, [context] { context->TryCancel(); }, [context] { return context->IsCancelled(); })) {}
  ~Attachment() { sessions_.detach(session_, number_); }
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;
  explicit operator bool() const { return number_ != 0; }
  // False once another stream has taken over, or this one is known to have broken.
  bool is_current() const { return session_.stream() == number_; }

 private:
  Sessions& sessions_;
  Session& session_;
  const uint64_t number_;
};

absl::StatusOr<Device> device_of(const v1::UploadChunk& chunk) try {
  return decode_device(chunk.device());
} catch (const Error& error) {
  return to_status(error);
}

grpc::Status session_ended() { return grpc::Status(grpc::StatusCode::NOT_FOUND, "the session has ended"); }

grpc::Status send_chunks(ByteSource& bytes, v1::DownloadChunk* chunk, grpc::ServerWriter<v1::DownloadChunk>* writer) {
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

std::shared_ptr<Session> EngineService::session_of(const grpc::ServerContext& context, grpc::Status* status) const {
  std::shared_ptr<server::Session> session = sessions_.find(metadata(context, "teletensor-session"));
  if (!session) *status = session_ended();
  return session;
}

grpc::Status EngineService::Hello(grpc::ServerContext* context, const v1::HelloRequest* request,
                                  v1::HelloReply* reply) {
  absl::Status status = auth_.check(metadata(*context, "authorization"));
  if (!status.ok()) {
    spdlog::warn("refused {}: {}", context->peer(), std::string(status.message()));
    return to_grpc(status);
  }
  return to_grpc(sessions_.hello(*request, reply));
}

grpc::Status EngineService::Session(grpc::ServerContext* context,
                                    grpc::ServerReaderWriter<v1::Reply, v1::Frame>* stream) {
  grpc::Status status;
  auto session = session_of(*context, &status);
  if (!session) return status;
  const Attachment attachment(sessions_, *session, context);
  if (!attachment) return session_ended();
  FrameBuffer buffer;
  v1::Reply reply;
  for (v1::Frame* frame = buffer.next(); stream->Read(frame); frame = buffer.next()) {
    // A stream that broke may have left frames unread: the client, if there still is one, sends them again.
    if (!attachment.is_current()) break;
    reply.Clear();
    session->execute(*frame, &reply);
    bool sent = stream->Write(reply);
    if (reply.has_fault()) {
      spdlog::warn("session {}: {}", session->id(), reply.fault().message());
      status = to_grpc(fault_status(reply.fault()));
    }
    if (session->over() || !sent) break;
  }
  if (session->over()) {
    sessions_.end(*session);
    return status;
  }
  // A client that still listens has sent bytes that are no frame, or has forgotten to close.
  return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "the stream ended without a closing frame");
}

grpc::Status EngineService::Upload(grpc::ServerContext* context, grpc::ServerReader<v1::UploadChunk>* reader,
                                   v1::UploadReply* reply) {
  grpc::Status status;
  auto session = session_of(*context, &status);
  if (!session) return status;
  v1::UploadChunk chunk;
  if (!reader->Read(&chunk)) return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "an upload has a first chunk");
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

grpc::Status EngineService::Download(grpc::ServerContext* context, const v1::DownloadRequest* request,
                                     grpc::ServerWriter<v1::DownloadChunk>* writer) {
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

grpc::Status EngineService::Cancel(grpc::ServerContext* context, const v1::CancelRequest* request,
                                   v1::CancelReply* reply) {
  grpc::Status status;
  auto session = session_of(*context, &status);
  if (session) reply->set_executed(session->cancel(request->through()));
  return status;
}

}  // namespace tt::server
