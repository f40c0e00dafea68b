// EngineService's Hello: in an ordinary engine, in one that redirects its clients to workers, and in such a worker.
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/version.h"
#include "server/rpc/engine_service.h"
#include "server/version.h"

namespace tt::server {
namespace {

constexpr char kSessionKey[] = "teletensor-session", kAdmissionKey[] = "teletensor-admission";

absl::Status role_changed(const Principal& principal) {
  return absl::UnauthenticatedError(absl::StrCat("the role of ", principal.name, " changed"));
}

absl::Status not_admitted() {
  return absl::UnauthenticatedError(
      "a worker opens a session only with the key that its engine returned a moment ago, and only once; connect to the "
      "engine's own address");
}

}  // namespace

absl::Status EngineService::check_hello(const grpc::ServerContext& context) const {
  if (isolation_.admissions == nullptr) return auth_.check(credentials_of(context), Role::kUser);
  const absl::string_view session = metadata(context, kSessionKey);
  if (!session.empty())
    return sessions_.find(session) ? absl::OkStatus() : absl::NotFoundError("the session has ended");
  return isolation_.admissions->has(metadata(context, kAdmissionKey)) ? absl::OkStatus() : not_admitted();
}

grpc::Status EngineService::Hello(grpc::ServerContext* context, const v1::HelloRequest* request,
                                  v1::HelloReply* reply) {
  if (absl::Status status = check_client_version(request->version()); !status.ok()) {
    audit_.refused(context->peer(), status);
    return to_grpc(status);
  }
  if (isolation_.admissions != nullptr) return hello_in_worker(context, *request, reply);
  const absl::StatusOr<Principal> caller = auth_.caller(credentials_of(*context));
  if (!caller.ok()) return to_grpc(caller.status());
  if (caller->role < Role::kUser) return to_grpc(role_changed(*caller));  // since the call's check
  const bool redirects = isolation_.placement != nullptr;
  absl::Status status = redirects ? redirect(*context, *caller, *request, reply)
                                  : sessions_.hello(*request, reply, address_of(context->peer()), *caller);
  // The access may have been revoked since the check, and the principal's sessions ended before this one was there.
  if (const auto now = auth_.caller(credentials_of(*context));
      status.ok() && (!now.ok() || now->role != caller->role)) {
    if (redirects) {
      isolation_.placement->revoke(caller->name);
    } else {
      sessions_.end(reply->session_id());
    }
    reply->Clear();
    status = now.ok() ? role_changed(*caller) : now.status();
  }
  const char* const event = request->resume_key().empty() ? "session.open" : "session.resume";
  audit_.record({.event = redirects ? "session.redirect" : event,
                 .principal = caller->name,
                 .peer = context->peer(),
                 .session = reply->session_id(),
                 .outcome = status});
  if (redirects) reply->clear_session_id();  // the worker's reply has it
  return to_grpc(status);
}

absl::Status EngineService::redirect(const grpc::ServerContext& context, const Principal& caller,
                                     const v1::HelloRequest& request, v1::HelloReply* reply) {
  reply->set_engine_version(kVersion);
  const bool by_socket = address_of(context.peer()) == "unix";
  if (!request.resume_key().empty()) {
    return isolation_.placement->locate(caller, request.worker(), by_socket, reply);
  }
  if (!request.follows_redirect()) {
    return absl::FailedPreconditionError(
        "this engine serves each principal in a process of its own, to which this client cannot follow; use a client "
        "of the engine's version");
  }
  return isolation_.placement->place(caller, by_socket, reply);
}

grpc::Status EngineService::hello_in_worker(grpc::ServerContext* context, const v1::HelloRequest& request,
                                            v1::HelloReply* reply) {
  const Principal principal = isolation_.admissions->principal();
  const bool resumes = !request.resume_key().empty();
  absl::Status status;
  uint64_t number = 0;
  if (resumes) {
    // The metadata's key was checked; the body must not name another session.
    if (metadata(*context, kSessionKey) != request.resume_key()) status = absl::NotFoundError("the session has ended");
  } else if (const auto admitted = isolation_.admissions->take(metadata(*context, kAdmissionKey))) {
    number = *admitted;
  } else {
    status = not_admitted();
  }
  if (status.ok()) status = sessions_.hello(request, reply, address_of(context->peer()), principal, number);
  audit_.record({.event = resumes ? "session.resume" : "session.open",
                 .principal = principal.name,
                 .peer = context->peer(),
                 .session = reply->session_id(),
                 .outcome = status});
  return to_grpc(status);
}

}  // namespace tt::server
