#include "server/engine_service.h"

#include <algorithm>
#include <memory>

#include "absl/strings/escaping.h"
#include "server/convert.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

// Whether a reply's memory is worth giving back before the next one.
bool is_large(const v1::Reply& reply) {
  constexpr size_t kManyBytes = 256 << 10;
  constexpr int kManyReads = 256;
  size_t bytes = 0;
  for (const v1::ReadResult& read : reply.reads()) bytes += read.data().size();
  return reply.reads_size() > kManyReads || bytes > kManyBytes;
}

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

EngineService::EngineService(const Auth& auth, Sessions& sessions) : auth_(auth), sessions_(sessions) {
  using Handler = grpc::internal::BidiStreamingHandler<EngineService, FrameBuffer, v1::Reply>;
  auto handler = [](EngineService* service, grpc::ServerContext* context, FrameStream* stream) {
    return service->converse(context, stream);
  };
  MarkMethodStreamed(kSessionMethod, new Handler(handler, this));  // the service owns it
}

grpc::Status EngineService::converse(grpc::ServerContext* context, FrameStream* stream) {
  grpc::Status status;
  auto session = session_of(*context, &status);
  if (!session) return status;
  uint64_t attachment = sessions_.attach(*session, [context] { context->TryCancel(); });
  if (attachment == 0) return session_ended();
  FrameBuffer buffer(session->limits(), session->account());
  v1::Reply reply;
  while (stream->Read(&buffer)) {
    reply.Clear();
    if (buffer.refusal()) {
      session->reject(*buffer.refusal(), &reply);
    } else {
      session->execute(buffer.frame(), &reply);
    }
    bool sent = stream->Write(reply);
    if (reply.has_fault()) {
      spdlog::warn("session {}: {}", session->id(), absl::Utf8SafeCHexEscape(reply.fault().message()));
      status = to_grpc(fault_status(reply.fault()));
    }
    if (session->over() || !sent) break;
    if (is_large(reply)) v1::Reply().Swap(&reply);
  }
  if (session->over()) {
    sessions_.end(*session);
    return status;
  }
  sessions_.detach(*session, attachment);
  // A client that still listens has forgotten to close.
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

}  // namespace tt::server
