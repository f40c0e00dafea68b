#include "server/engine_service.h"

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

grpc::Status session_ended() { return grpc::Status(grpc::StatusCode::NOT_FOUND, "the session has ended"); }

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
  uint64_t attachment = sessions_.attach(*session, [context] { context->TryCancel(); });
  if (attachment == 0) return session_ended();
  FrameBuffer buffer;
  v1::Reply reply;
  for (v1::Frame* frame = buffer.next(); stream->Read(frame); frame = buffer.next()) {
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
  sessions_.detach(*session, attachment);
  // A client that still listens has sent bytes that are no frame, or has forgotten to close.
  return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "the stream ended without a closing frame");
}

}  // namespace tt::server
