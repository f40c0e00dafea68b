// EngineService's Hello: in an ordinary engine, in one that redirects its clients to workers or to other engines, and
// where it redirects them to.
#include <memory>
#include <string>
#include <utility>

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
      "a session is opened here only with the key that the engine returned a moment ago, and only once; connect to "
      "that "
      "engine's own address");
}

}  // namespace

// With a key of Admissions, or that of a session which was opened by one. In a worker, every call is.
bool EngineService::comes_by_key(const grpc::ServerContext& context) const {
  if (isolation_.admissions == nullptr) return false;
  return isolation_.admissions->is_worker() || !metadata(context, kSessionKey).empty() ||
         !metadata(context, kAdmissionKey).empty();
}

absl::StatusOr<CallAdmission::Holder> EngineService::check_hello(const grpc::ServerContext& context) const {
  if (!comes_by_key(context)) return holder_of_caller(auth_, context, Role::kUser);
  const absl::string_view key = metadata(context, kSessionKey);
  if (key.empty()) {
    if (!isolation_.admissions->has(metadata(context, kAdmissionKey))) return not_admitted();
    return CallAdmission::address_holder(context);
  }
  const std::shared_ptr<server::Session> session = sessions_.find(key);
  // The sessions of other principals are resumed with their token.
  const bool is_admitted = session != nullptr && isolation_.admissions->knows(session->principal());
  if (!is_admitted) return absl::NotFoundError("the session has ended");
  return CallAdmission::Holder{session->principal()};
}

grpc::Status EngineService::Hello(grpc::ServerContext* context, const v1::HelloRequest* request,
                                  v1::HelloReply* reply) {
  if (absl::Status status = check_client_version(request->version()); !status.ok()) {
    audit_.refused(context->peer(), status);
    return to_grpc(status);
  }
  if (comes_by_key(*context)) return hello_by_key(context, *request, reply);
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
  const bool is_remote = isolation_.placement->is_remote();
  if (!(is_remote ? request.follows_placement() : request.follows_redirect())) {
    return absl::FailedPreconditionError(
        absl::StrCat(is_remote ? "this engine opens sessions in other engines"
                               : "this engine serves each principal in a process of its own",
                     ", to which this client cannot follow; use a client of the engine's version"));
  }
  return isolation_.placement->place(caller, by_socket, reply);
}

grpc::Status EngineService::hello_by_key(grpc::ServerContext* context, const v1::HelloRequest& request,
                                         v1::HelloReply* reply) {
  const bool resumes = !request.resume_key().empty();
  absl::Status status;
  Admissions::Admitted admitted;
  if (resumes) {
    // The metadata's key was checked; the body must not name another session.
    const std::shared_ptr<server::Session> session = sessions_.find(request.resume_key());
    if (metadata(*context, kSessionKey) != request.resume_key() || session == nullptr) {
      status = absl::NotFoundError("the session has ended");
    } else {
      admitted.principal.name = session->principal();
    }
  } else if (auto taken = isolation_.admissions->take(metadata(*context, kAdmissionKey))) {
    admitted = *std::move(taken);
  } else {
    status = not_admitted();
  }
  const std::string& name =
      isolation_.admissions->is_worker() ? isolation_.admissions->worker_of() : admitted.principal.name;
  if (status.ok()) {
    status = sessions_.hello(request, reply, address_of(context->peer()), admitted.principal, admitted.session);
  }
  audit_.record({.event = resumes ? "session.resume" : "session.open",
                 .principal = name,
                 .peer = context->peer(),
                 .session = reply->session_id(),
                 .outcome = status});
  return to_grpc(status);
}

}  // namespace tt::server
