#include "server/admin/admin_service.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/device/devices.h"
#include "engine/schema/error.h"
#include "server/convert.h"
#include "server/rpc/engine_service.h"
#include "server/rpc/unary.h"
#include "server/workers/worker_calls.h"
#include "server/workers/worker_service.h"

namespace tt::server {
namespace {

// What the audit log records of a request.
template <typename Request>
std::string text_of(const Request& request) {
  return request.ShortDebugString();
}
std::string text_of(const v1::AdmitRequest& request) {  // without the key
  return absl::StrCat("principal: \"", request.principal(), "\"");
}

}  // namespace

absl::Status AdminService::check(const grpc::ServerContext& context, Access access) const {
  const Auth::Credentials credentials = credentials_of(context);
  if (access == Access::kOperators) return auth_.check(credentials, Role::kOperator);
  const absl::StatusOr<Principal> caller = auth_.caller(credentials);
  if (!caller.ok() || access == Access::kAnyPrincipal || caller->role != Role::kUser) return caller.status();
  return auth_.check(credentials, Role::kOperator);
}

template <typename Request, typename Reply>
grpc::internal::MethodHandler* AdminService::handler(const char* name, Access access, Method<Request, Reply> method) {
  auto may_call = [this, access](const grpc::ServerContext& context) -> absl::StatusOr<CallAdmission::Holder> {
    if (absl::Status status = check(context, access); !status.ok()) return status;
    return holder_of_caller(auth_, context, Role::kObserver);
  };
  auto run = [this, name, access, method](grpc::ServerContext* context, const Request* request, Reply* reply) {
    // Determined first: the principal may be revoked while the call runs.
    const absl::StatusOr<Principal> caller = auth_.caller(credentials_of(*context));
    const auto started = std::chrono::steady_clock::now();
    const grpc::Status status = (this->*method)(context, request, reply);
    if (tracer_) trace(name, access, *context, status, std::chrono::steady_clock::now() - started);
    if (access == Access::kOperators) {
      audit_.record({.event = name,
                     .principal = caller.ok() ? caller->name : "",
                     .peer = context->peer(),
                     .outcome = {static_cast<absl::StatusCode>(status.error_code()), status.error_message()},
                     .reason = text_of(*request)});
    }
    return status;
  };
  return unary_handler<Request, Reply>(admission_, CallAdmission::Kind::kAdmin, may_call, run);
}

void AdminService::trace(const char* name, Access access, const grpc::ServerContext& context,
                         const grpc::Status& status, std::chrono::nanoseconds duration) {
  const std::optional<TraceContext> caller = parse_traceparent(metadata(context, "traceparent"));
  const uint64_t number = calls_.fetch_add(1, std::memory_order_relaxed);
  const bool is_wanted = caller ? caller->sampled : access == Access::kOperators || tracer_->samples(number);
  if (!is_wanted || !tracer_->allow_call()) return;
  const std::optional<TraceContext> own = new_span_context(caller);
  if (!own) return tracer_->drop(Tracer::Dropped::kFailed, 1);
  Span span;
  span.name = name;
  span.from_client = true;
  span.context = *own;
  if (caller) span.parent = caller->span;
  const absl::StatusOr<Principal> principal = auth_.caller(credentials_of(context));
  if (principal.ok() && !principal->name.empty()) span.attribute("teletensor.principal", principal->name);
  span.attribute("client.address", address_of(context.peer()));
  span.attribute("rpc.grpc.status_code", static_cast<uint64_t>(status.error_code()));
  span.failed = !status.ok();
  span.ended_now(duration);
  tracer_->add(std::move(span));
}

// Registers the methods in the order of their declaration, because gRPC identifies them by index.
AdminService::AdminService(const Auth& auth, Sessions& sessions, CallAdmission& admission, AuditLog& audit,
                           const EngineStatus& status, std::shared_ptr<Tracer> tracer, std::function<void()> exit,
                           Workers* workers, Placed placed, Replace upgrade)
    : auth_(auth),
      sessions_(sessions),
      admission_(admission),
      audit_(audit),
      status_(status),
      tracer_(std::move(tracer)),
      exit_(std::move(exit)),
      workers_(workers),
      placed_(std::move(placed)),
      upgrade_(std::move(upgrade)) {
  MarkMethodStreamed(0, handler("admin.status", Access::kAnyPrincipal, &AdminService::Status));
  MarkMethodStreamed(1, handler("admin.empty_cache", Access::kOperators, &AdminService::EmptyCache));
  MarkMethodStreamed(2, handler("admin.snapshot", Access::kOperators, &AdminService::Snapshot));
  MarkMethodStreamed(3, handler("admin.drain", Access::kOperators, &AdminService::Drain));
  MarkMethodStreamed(4, handler("admin.end_session", Access::kOperators, &AdminService::EndSession));
  MarkMethodStreamed(5, handler("admin.profile", Access::kObserversAndOperators, &AdminService::Profile));
  MarkMethodStreamed(6, handler("admin.admit", Access::kOperators, &AdminService::Admit));
  MarkMethodStreamed(7, handler("admin.revoke", Access::kOperators, &AdminService::Revoke));
  MarkMethodStreamed(8, handler("admin.upgrade", Access::kOperators, &AdminService::Upgrade));
}

grpc::Status AdminService::Status(grpc::ServerContext* context, const v1::StatusRequest*, v1::StatusReply* reply) {
  const absl::StatusOr<Principal> caller = auth_.caller(credentials_of(*context));
  if (!caller.ok()) return to_grpc(caller.status());
  *reply = status_.reply_to(*caller);
  return grpc::Status::OK;
}

grpc::Status AdminService::EmptyCache(grpc::ServerContext*, const v1::EmptyCacheRequest* request,
                                      v1::EmptyCacheReply* reply) {
  uint64_t released = 0;
  if (workers_ != nullptr) {
    for (const auto& answer : call_workers(*workers_, &v1::Admin::Stub::AsyncEmptyCache, *request)) {
      released += answer.reply.released();
    }
  }
  for (const DeviceInfo& info : Devices::instance().list()) {
    Allocator& allocator = Devices::instance().allocator(info.device);
    uint64_t before = allocator.stats().all.reserved.now;
    allocator.empty_cache();
    released += before - std::min(before, allocator.stats().all.reserved.now);
  }
  reply->set_released(released);
  return grpc::Status::OK;
}

grpc::Status AdminService::Snapshot(grpc::ServerContext*, const v1::SnapshotRequest* request,
                                    v1::SnapshotReply* reply) {
  if (workers_ != nullptr) {
    for (auto& answer : call_workers(*workers_, &v1::Admin::Stub::AsyncSnapshot, *request)) {
      if (!answer.status.ok()) return answer.status;
      reply->MergeFrom(answer.reply);
    }
    return grpc::Status::OK;
  }
  try {
    for (const BlockInfo& info : Devices::instance().allocator(decode_device(request->device())).snapshot()) {
      v1::SnapshotReply::Block* block = reply->add_blocks();
      block->set_segment(reinterpret_cast<uintptr_t>(info.segment));
      block->set_offset(info.offset);
      block->set_size(info.size);
      block->set_in_use(info.in_use);
      block->set_waiting(info.waiting);
      block->set_requested(info.requested);
      block->set_owner(info.owner);
      block->set_site(info.site);
      block->set_pool(info.pool);
      block->set_stream(info.stream);
    }
  } catch (const Error& error) {
    return to_grpc(to_status(error));
  }
  return grpc::Status::OK;
}

grpc::Status AdminService::Drain(grpc::ServerContext* context, const v1::DrainRequest* request, v1::DrainReply*) {
  sessions_.stop();
  if (workers_ != nullptr) {
    drain_workers(*context, *request);
    exit_();
    return grpc::Status::OK;
  }
  auto deadline = std::chrono::steady_clock::now() +
                  std::chrono::duration<double>(std::clamp(request->deadline_seconds(), 0.0, 86400.0));
  while (sessions_.size() != 0 && std::chrono::steady_clock::now() < deadline && !context->IsCancelled()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  exit_();
  return grpc::Status::OK;
}

// Workers end once they are drained.
void AdminService::drain_workers(const grpc::ServerContext& context, const v1::DrainRequest& request) {
  const auto time =
      std::chrono::milliseconds(static_cast<int64_t>(1000 * std::clamp(request.deadline_seconds(), 0.0, 86400.0)));
  const auto deadline = std::chrono::steady_clock::now() + time;
  workers_->close(/*they_end=*/true);
  call_workers(*workers_, &v1::Admin::Stub::AsyncDrain, request, time + kWorkerTimeout);
  workers_->wait_until_ended([&] { return context.IsCancelled() || std::chrono::steady_clock::now() >= deadline; });
}

grpc::Status AdminService::EndSession(grpc::ServerContext*, const v1::EndSessionRequest* request,
                                      v1::EndSessionReply*) {
  if (sessions_.end(request->id())) return grpc::Status::OK;
  if (workers_ != nullptr) {  // sessions of different workers have different numbers
    for (const auto& answer : call_workers(*workers_, &v1::Admin::Stub::AsyncEndSession, *request)) {
      if (answer.status.ok()) return grpc::Status::OK;
    }
  }
  return grpc::Status(grpc::StatusCode::NOT_FOUND, absl::StrCat("no session has the id ", request->id()));
}

grpc::Status AdminService::Profile(grpc::ServerContext*, const v1::ProfileRequest*, v1::ProfileReply* reply) {
  absl::StatusOr<v1::ProfileReply> profile = status_.profile();
  if (!profile.ok()) return to_grpc(profile.status());
  *reply = *std::move(profile);
  return grpc::Status::OK;
}

absl::Status AdminService::check_placement(const grpc::ServerContext& context, const std::string& principal) const {
  const absl::StatusOr<Principal> caller = auth_.caller(credentials_of(context));
  if (!caller.ok()) return caller.status();
  if (placed_.admissions == nullptr || caller->name != placed_.by) {
    return absl::PermissionDeniedError(absl::StrCat("expected the principal of --placed-by, ",
                                                    placed_.by.empty() ? "which is not set" : placed_.by, ", got ",
                                                    caller->name));
  }
  if (!is_principal_name(principal)) return absl::InvalidArgumentError("expected the name of a principal");
  return absl::OkStatus();
}

grpc::Status AdminService::Admit(grpc::ServerContext* context, const v1::AdmitRequest* request, v1::AdmitReply*) {
  if (absl::Status status = check_placement(*context, request->principal()); !status.ok()) return to_grpc(status);
  return to_grpc(admit(*placed_.admissions, request->principal(), *request));
}

grpc::Status AdminService::Revoke(grpc::ServerContext* context, const v1::RevokeRequest* request,
                                  v1::RevokeReply* reply) {
  if (absl::Status status = check_placement(*context, request->principal()); !status.ok()) return to_grpc(status);
  placed_.admissions->clear(request->principal());
  reply->set_sessions(sessions_.end_all_of(request->principal()));
  return grpc::Status::OK;
}

grpc::Status AdminService::Upgrade(grpc::ServerContext*, const v1::UpgradeRequest* request, v1::UpgradeReply* reply) {
  if (!upgrade_) return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "this process cannot be replaced");
  absl::StatusOr<v1::UpgradeReply> upgraded = upgrade_(*request);
  if (!upgraded.ok()) return to_grpc(upgraded.status());
  *reply = *std::move(upgraded);
  return grpc::Status::OK;
}

}  // namespace tt::server
