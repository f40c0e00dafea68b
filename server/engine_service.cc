#include "server/engine_service.h"

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
  const Attachment attachment(sessions_, *session, context);
  if (!attachment) return session_ended();
  FrameBuffer buffer(session->limits(), session->account());
  v1::Reply reply;
  while (stream->Read(&buffer)) {
    // A stream that broke may have left frames unread: the client, if there still is one, sends them again.
    if (!attachment.is_current()) break;
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
  // A client that still listens has forgotten to close.
  return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "the stream ended without a closing frame");
}

grpc::Status EngineService::Cancel(grpc::ServerContext* context, const v1::CancelRequest* request,
                                   v1::CancelReply* reply) {
  grpc::Status status;
  auto session = session_of(*context, &status);
  if (session) reply->set_executed(session->cancel(request->through()));
  return status;
}

}  // namespace tt::server
