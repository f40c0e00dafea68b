#include "server/rpc/engine_service.h"

#include <memory>
#include <system_error>
#include <thread>

#include <grpc/grpc_security_constants.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/convert.h"
#include "server/log.h"
#include "server/rpc/pipe_stream.h"
#include "server/rpc/unary.h"

namespace tt::server {
namespace {

// Whether the reply's memory should be freed before the next reply.
bool is_large(const v1::Reply& reply) {
  constexpr size_t kManyBytes = 256 << 10;
  constexpr int kManyReads = 256;
  size_t bytes = 0;
  for (const v1::ReadResult& read : reply.reads()) bytes += read.data().size();
  return reply.reads_size() > kManyReads || reply.number_errors_size() > kManyReads || bytes > kManyBytes;
}

// gRPC's identifiers of the methods: their indices in the service's declaration.
constexpr int kHello = 0, kSession = 1, kDownload = 3, kCancel = 4, kPersist = 5;

absl::Status session_ended() { return absl::NotFoundError("the session has ended"); }

CallAdmission::Holder holder_of(const Session& session) {
  return {session.principal(), session.role() == Role::kOperator, absl::StrCat("session ", session.id())};
}

}  // namespace

// Attaches a stream to a session for the duration of a scope.
class EngineService::Attachment {
 public:
  Attachment(Sessions& sessions, server::Session& session, grpc::ServerContext* context)
      : sessions_(sessions),
        session_(session),
        number_(sessions.attach(
            session, [context] { context->TryCancel(); }, [context] { return context->IsCancelled(); })) {}
  ~Attachment() { sessions_.detach(session_, number_); }
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;
  explicit operator bool() const { return number_ != 0; }
  // Returns false once another stream has been attached, or this stream is known to be broken.
  bool is_current() const { return session_.stream() == number_; }
  server::Session& session() const { return session_; }

 private:
  Sessions& sessions_;
  server::Session& session_;
  const uint64_t number_;
};

absl::string_view metadata(const grpc::ServerContext& context, const char* name) {
  auto found = context.client_metadata().find(name);
  if (found == context.client_metadata().end()) return {};
  return {found->second.data(), found->second.size()};
}

// Estimated memory of a session's stream: its connection, call and thread, with their buffers.
constexpr uint64_t kStreamBytes = uint64_t{96} << 10;

Auth::Credentials credentials_of(const grpc::ServerContext& context) {
  Auth::Credentials credentials{metadata(context, "authorization")};
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  if (!peer) return credentials;
  // gRPC sets these only from a certificate that it has verified. A common name counts only in a certificate without
  // alternative names (RFC 6125), whose authority may not have checked it.
  for (const char* property : {GRPC_X509_SAN_PROPERTY_NAME, GRPC_X509_CN_PROPERTY_NAME}) {
    for (const grpc::string_ref& name : peer->FindPropertyValues(property)) {
      credentials.certificate_names.emplace_back(name.data(), name.size());
    }
    if (!credentials.certificate_names.empty()) break;
  }
  return credentials;
}

absl::StatusOr<CallAdmission::Holder> holder_of_caller(const Auth& auth, const grpc::ServerContext& context,
                                                       Role least) {
  const Auth::Credentials credentials = credentials_of(context);
  if (absl::Status status = auth.check(credentials, least); !status.ok()) return status;
  const absl::StatusOr<Principal> caller = auth.caller(credentials);
  if (!caller.ok()) return caller.status();
  return CallAdmission::holder_of(*caller, context);
}

grpc::Status to_grpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

EngineService::EngineService(const Auth& auth, Sessions& sessions, CallAdmission& admission, AuditLog& audit,
                             const Isolation& isolation)
    : auth_(auth), sessions_(sessions), admission_(admission), audit_(audit), isolation_(isolation) {
  using grpc::ServerContext;
  auto may_open = [this](const ServerContext& context) { return check_hello(context); };
  auto has_session = [this](const ServerContext& context) -> absl::StatusOr<CallAdmission::Holder> {
    const auto session = sessions_.find(metadata(context, "teletensor-session"));
    if (!session) return session_ended();
    return holder_of(*session);
  };
  // The service takes ownership of its handlers.
  MarkMethodStreamed(kHello, unary_handler<v1::HelloRequest, v1::HelloReply>(
                                 admission_, CallAdmission::Kind::kHello, may_open,
                                 [this](ServerContext* context, const v1::HelloRequest* request,
                                        v1::HelloReply* reply) { return Hello(context, request, reply); }));
  MarkMethodStreamed(kCancel, unary_handler<v1::CancelRequest, v1::CancelReply>(
                                  admission_, CallAdmission::Kind::kRequest, has_session,
                                  [this](ServerContext* context, const v1::CancelRequest* request,
                                         v1::CancelReply* reply) { return Cancel(context, request, reply); }));
  MarkMethodStreamed(kPersist, unary_handler<v1::PersistRequest, v1::PersistReply>(
                                   admission_, CallAdmission::Kind::kRequest, has_session,
                                   [this](ServerContext* context, const v1::PersistRequest* request,
                                          v1::PersistReply* reply) { return Persist(context, request, reply); }));
  MarkMethodStreamed(kDownload, new grpc::internal::SplitServerStreamingHandler<v1::DownloadRequest, v1::DownloadChunk>(
                                    [this](ServerContext* context, DownloadStream* stream) {
                                      return serve_download(context, stream);
                                    }));
  using Handler = grpc::internal::BidiStreamingHandler<EngineService, FrameBuffer, v1::Reply>;
  auto serve_session = [](EngineService* service, ServerContext* context, FrameStream* stream) {
    return service->serve_session(context, stream);
  };
  MarkMethodStreamed(kSession, new Handler(serve_session, this));
}

std::shared_ptr<Session> EngineService::session_of(grpc::ServerContext& context, grpc::Status* status) const {
  std::shared_ptr<server::Session> session = sessions_.find(metadata(context, "teletensor-session"));
  if (!session) *status = admission_.refuse(context, session_ended());
  return session;
}

absl::StatusOr<CallAdmission::Slot> EngineService::admit(grpc::ServerContext& context, CallAdmission::Kind kind,
                                                         const server::Session& session) {
  admission_.authenticated(context.peer());
  return admission_.admit(kind, holder_of(session));
}

grpc::Status EngineService::serve_session(grpc::ServerContext* context, FrameStream* stream) {
  grpc::Status status;
  auto session = session_of(*context, &status);
  if (!session) return status;
  absl::StatusOr<CallAdmission::Slot> slot = admit(*context, CallAdmission::Kind::kStream, *session);
  if (!slot.ok()) return admission_.refuse(*context, slot.status());
  const Attachment attachment(sessions_, *session, context);
  if (!attachment) return to_grpc(session_ended());
  const absl::string_view nonce = metadata(*context, "teletensor-pipes");
  const HostCharge charge(session->account(), kStreamBytes);
  status =
      nonce.empty() ? execute_frames(context, stream, attachment) : serve_pipes(context, stream, nonce, attachment);
  if (session->over()) sessions_.end(*session);
  return status;
}

grpc::Status EngineService::serve_pipes(grpc::ServerContext* context, FrameStream* stream, absl::string_view nonce,
                                        const Attachment& attachment) {
  server::Session& session = attachment.session();
  uint64_t number = 0;
  if (!absl::SimpleAtoi(nonce, &number)) return to_grpc(absl::InvalidArgumentError("expected the segment's number"));
  absl::StatusOr<std::shared_ptr<SharedSegment>> segment = session.segment_of(number);
  if (!segment.ok()) return to_grpc(segment.status());
  auto pipes = (*segment)->claim_pipes();
  if (!pipes) return to_grpc(absl::FailedPreconditionError("another stream uses the session's shared memory"));
  PipeStream frames(*segment, std::move(pipes), session.limits().max_frame_bytes, session.account());
  grpc::Status status;
  std::thread executor;
  try {
    executor = std::thread([&] {
      status = execute_frames(context, &frames, attachment);
      context->TryCancel();  // ends the wait below
    });
  } catch (const std::system_error& error) {
    return to_grpc(absl::ResourceExhaustedError(absl::StrCat("cannot start the stream's thread: ", error.what())));
  }
  FrameBuffer none(session.limits(), session.account());
  stream->Read(&none);  // returns when the stream ends: frames of this client do not arrive here
  context->TryCancel();
  frames.stop();
  executor.join();
  return status;
}

template <typename Stream>
grpc::Status EngineService::execute_frames(grpc::ServerContext* context, Stream* stream, const Attachment& attachment) {
  server::Session* const session = &attachment.session();
  grpc::Status status;
  bool closed = false;  // by the client's closing frame
  FrameBuffer buffer(session->limits(), session->account());
  v1::Reply reply;
  for (;;) {
    FrameArrival arrival{Profiler::now()};
    if (!stream->Read(&buffer)) break;
    arrival.received = Profiler::now();
    arrival.bytes = buffer.bytes();
    // A broken stream may have left frames unread; the client resends them. It also resends a frame that is still being
    // executed: only the newest stream waits for its end, so that a client may reconnect as often as it must.
    if (!attachment.is_current()) break;
    if (session->busy() &&
        !session->wait_until_idle([&] { return attachment.is_current() && !context->IsCancelled(); })) {
      break;
    }
    reply.Clear();
    if (buffer.refusal()) {
      session->reject(*buffer.refusal(), &reply);
    } else {
      session->execute(buffer.frame(), &reply, arrival);
    }
    if (session->is_parked()) {
      status = to_grpc(absl::UnavailableError("the engine is shutting down; the session continues after its start"));
      break;
    }
    bool sent = stream->Write(reply);
    if (reply.has_fault()) {
      static LogLimit limit;
      limit.warn(absl::StrCat("session ", session->id(), ": ", reply.fault().message()),
                 {session->id(), session->principal(), context->peer()});
      status = to_grpc(fault_status(reply.fault()));
    }
    if (session->over() || !sent) {
      closed = buffer.frame().close();
      break;
    }
    if (is_large(reply)) v1::Reply().Swap(&reply);
  }
  if (closed || !status.ok()) return status;
  // Another thread may have ended the session after the last frame, whose reply does not say so. With OK the client
  // would try to resume until the lease has passed.
  if (session->has_ended()) return to_grpc(session_ended());
  return to_grpc(absl::InvalidArgumentError("the stream ended without a closing frame"));
}

grpc::Status EngineService::Cancel(grpc::ServerContext* context, const v1::CancelRequest* request,
                                   v1::CancelReply* reply) {
  grpc::Status status;
  auto session = session_of(*context, &status);
  if (session) reply->set_executed(session->cancel(request->through()));
  return status;
}

grpc::Status EngineService::Persist(grpc::ServerContext* context, const v1::PersistRequest* request,
                                    v1::PersistReply* reply) {
  grpc::Status status;
  auto session = session_of(*context, &status);
  if (!session) return status;
  return to_grpc(sessions_.persist(*session, {request->every_seconds(), request->wait_seconds()}, reply));
}

}  // namespace tt::server
