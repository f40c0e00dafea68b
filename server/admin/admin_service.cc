#include "server/admin/admin_service.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "engine/device/devices.h"
#include "engine/schema/error.h"
#include "server/convert.h"
#include "server/resident_bytes.h"
#include "server/rpc/engine_service.h"
#include "server/rpc/unary.h"
#include "server/version.h"
#include "server/workers/worker_calls.h"

namespace tt::server {
namespace {

void describe(const Level& level, v1::Level* wire) {
  wire->set_now(level.now);
  wire->set_peak(level.peak);
}

void describe(const PoolStats& stats, v1::PoolStats* wire) {
  describe(stats.requested, wire->mutable_requested());
  describe(stats.allocated, wire->mutable_allocated());
  describe(stats.active, wire->mutable_active());
  describe(stats.inactive_split, wire->mutable_inactive_split());
  describe(stats.reserved, wire->mutable_reserved());
}

void describe(const AllocatorStats& stats, v1::MemoryStats* wire) {
  wire->set_allocated(stats.all.requested.now);
  wire->set_active(stats.all.active.now);
  wire->set_reserved(stats.all.reserved.now);
  wire->set_peak_allocated(stats.all.requested.peak);
  wire->set_peak_reserved(stats.all.reserved.peak);
  wire->set_allocations(stats.allocations);
  wire->set_retries(stats.retries);
  wire->set_out_of_memory(stats.out_of_memory);
  wire->set_system_allocations(stats.system_allocations);
  wire->set_system_frees(stats.system_frees);
  wire->set_limit(stats.limit);
  describe(stats.all, wire->mutable_all());
  describe(stats.small, wire->mutable_small());
  describe(stats.large, wire->mutable_large());
}

void describe(const std::string& name, const Sessions::Usage& usage, v1::PrincipalStatus* wire) {
  wire->set_name(name);
  wire->set_sessions(usage.sessions);
  wire->set_held_bytes(usage.bytes);
  wire->set_handles(usage.handles);
  wire->set_weight(usage.share->weight());
  wire->set_priority(usage.share->priority() == Share::Priority::kBatch ? "batch" : "interactive");
  wire->set_cpu_seconds(std::chrono::duration<double>(usage.share->used()).count());
  wire->set_sessions_opened(usage.opened);
  wire->set_frames(usage.frames);
  wire->set_instructions(usage.instructions);
  wire->set_failed(usage.failed);
  if (!usage.quota) return;
  const QuotaLimits limits = usage.quota->limits();
  wire->set_held_bytes(usage.quota->held());  // with what outlives its session
  wire->set_bookkeeping_bytes(usage.quota->bookkeeping());
  wire->set_transfers(usage.quota->transfers());
  wire->set_memory_limit(limits.memory);
  wire->set_host_memory_limit(limits.host_memory);
  wire->set_gpu_memory_limit(limits.gpu_memory);
  wire->set_handle_limit(limits.handles);
  wire->set_transfer_limit(limits.transfers);
  wire->set_checkpoint_limit(limits.checkpoint_bytes);
}

// Removes the fields that reveal another principal and its program.
void hide_program(v1::SessionStatus* session) {
  session->clear_client();
  session->clear_principal();
  session->clear_replay_refusal();
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
  auto may_call = [this, access](const grpc::ServerContext& context) { return check(context, access); };
  auto run = [this, name, access, method](grpc::ServerContext* context, const Request* request, Reply* reply) {
    const grpc::Status status = (this->*method)(context, request, reply);
    if (access == Access::kOperators) {
      const absl::StatusOr<Principal> caller = auth_.caller(credentials_of(*context));
      audit_.record({.event = name,
                     .principal = caller.ok() ? caller->name : "",
                     .peer = context->peer(),
                     .outcome = {static_cast<absl::StatusCode>(status.error_code()), status.error_message()},
                     .reason = request->ShortDebugString()});
    }
    return status;
  };
  return unary_handler<Request, Reply>(admission_, CallAdmission::Kind::kAdmin, may_call, run);
}

// Registers the methods in the order of their declaration, because gRPC identifies them by index.
AdminService::AdminService(const Auth& auth, Sessions& sessions, CallAdmission& admission, AuditLog& audit,
                           double profile_rate, std::function<void()> exit, Workers* workers)
    : auth_(auth),
      sessions_(sessions),
      admission_(admission),
      audit_(audit),
      exit_(std::move(exit)),
      workers_(workers),
      sampler_(sessions, profile_rate) {
  MarkMethodStreamed(0, handler("admin.status", Access::kAnyPrincipal, &AdminService::Status));
  MarkMethodStreamed(1, handler("admin.empty_cache", Access::kOperators, &AdminService::EmptyCache));
  MarkMethodStreamed(2, handler("admin.snapshot", Access::kOperators, &AdminService::Snapshot));
  MarkMethodStreamed(3, handler("admin.drain", Access::kOperators, &AdminService::Drain));
  MarkMethodStreamed(4, handler("admin.end_session", Access::kOperators, &AdminService::EndSession));
  MarkMethodStreamed(5, handler("admin.profile", Access::kObserversAndOperators, &AdminService::Profile));
}

grpc::Status AdminService::Status(grpc::ServerContext* context, const v1::StatusRequest*, v1::StatusReply* reply) {
  reply->set_engine_version(kVersion);
  reply->set_uptime_seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count());
  reply->set_pid(getpid());
  reply->set_resident_bytes(resident_bytes());
  for (const DeviceInfo& info : Devices::instance().list()) {
    v1::DeviceStatus* device = reply->add_devices();
    *device->mutable_device() = to_wire(info);
    describe(Devices::instance().allocator(info.device).stats(), device->mutable_memory());
    for (LibraryInfo& library : Devices::instance().backend(info.device).libraries()) {
      v1::LibraryStatus* status = device->add_libraries();
      status->set_name(std::move(library.name));
      status->set_version(std::move(library.version));
      status->set_missing(std::move(library.missing));
    }
  }
  const absl::StatusOr<Principal> caller = auth_.caller(credentials_of(*context));
  const bool sees_all = caller.ok() && caller->role != Role::kUser;
  v1::StatusReply in_workers;
  if (workers_ != nullptr) in_workers = status_of(*workers_);
  if (workers_ != nullptr) reply->clear_devices();  // this process uses none
  for (v1::DeviceStatus& device : *in_workers.mutable_devices()) *reply->add_devices() = std::move(device);
  std::vector<v1::SessionStatus> sessions = sessions_.list();
  for (v1::SessionStatus& session : *in_workers.mutable_sessions()) sessions.push_back(std::move(session));
  for (v1::SessionStatus& session : sessions) {
    const bool is_own = caller.ok() && session.principal() == caller->name;
    // Programs that share the user token need not be the same person's.
    if (!sees_all && (!is_own || caller->name == "user")) hide_program(&session);
    *reply->add_sessions() = std::move(session);
  }
  const auto may_see = [&](const std::string& name) { return sees_all || (caller.ok() && name == caller->name); };
  for (const auto& [name, usage] : sessions_.usage()) {
    if (!name.empty() && may_see(name)) describe(name, usage, reply->add_principals());
  }
  for (v1::PrincipalStatus& each : *in_workers.mutable_principals()) {
    if (may_see(each.name())) *reply->add_principals() = std::move(each);
  }
  for (v1::WorkerStatus& each : *in_workers.mutable_workers()) {
    if (may_see(each.principal())) *reply->add_workers() = std::move(each);
  }
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
  if (workers_ != nullptr) {
    for (auto& answer : call_workers(*workers_, &v1::Admin::Stub::AsyncProfile, v1::ProfileRequest())) {
      if (!answer.status.ok()) return answer.status;
      const v1::ProfileReply& one = answer.reply;
      reply->mutable_entries()->MergeFrom(one.entries());
      reply->set_rate(one.rate());
      reply->set_seconds(std::max(reply->seconds(), one.seconds()));
      reply->set_samples(std::max(reply->samples(), one.samples()));
      reply->set_cpu_seconds(reply->cpu_seconds() + one.cpu_seconds());
    }
    return grpc::Status::OK;
  }
  if (!sampler_.active()) {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "the engine was started with --profile-rate=0");
  }
  *reply = sampler_.profile();
  return grpc::Status::OK;
}

}  // namespace tt::server
