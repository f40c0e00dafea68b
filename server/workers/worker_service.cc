#include "server/workers/worker_service.h"

#include "server/rpc/engine_service.h"

namespace tt::server {

v1::PrincipalLimits to_wire(const Principal& principal) {
  v1::PrincipalLimits wire;
  wire.set_sessions(principal.max_sessions);
  if (principal.quota) {
    const QuotaLimits limits = principal.quota->limits();
    wire.set_memory(limits.memory);
    wire.set_host_memory(limits.host_memory);
    wire.set_gpu_memory(limits.gpu_memory);
    wire.set_handles(limits.handles);
    wire.set_transfers(limits.transfers);
    wire.set_checkpoint_bytes(limits.checkpoint_bytes);
  }
  wire.set_weight(principal.share ? principal.share->weight() : 1);
  wire.set_batch(principal.share && principal.share->priority() == Share::Priority::kBatch);
  return wire;
}

QuotaLimits quota_limits(const v1::PrincipalLimits& limits) {
  return {limits.memory(),  limits.host_memory(), limits.gpu_memory(),
          limits.handles(), limits.transfers(),   limits.checkpoint_bytes()};
}

absl::Status set_limits(Admissions& admissions, const std::string& principal, const v1::PrincipalLimits& limits) {
  const QuotaLimits quota = quota_limits(limits);
  return admissions.set_limits(principal, limits.sessions(), &quota, limits.weight(),
                               limits.batch() ? Share::Priority::kBatch : Share::Priority::kInteractive);
}

absl::Status admit(Admissions& admissions, const std::string& principal, const v1::AdmitRequest& request) {
  if (request.has_limits()) {
    if (absl::Status status = set_limits(admissions, principal, request.limits()); !status.ok()) return status;
  }
  return admissions.add(request.key(), request.session(), std::chrono::milliseconds(request.milliseconds()), principal);
}

grpc::Status WorkerService::Admit(grpc::ServerContext*, const v1::AdmitRequest* request, v1::AdmitReply*) {
  return to_grpc(admit(admissions_, admissions_.worker_of(), *request));
}

grpc::Status WorkerService::SetLimits(grpc::ServerContext*, const v1::PrincipalLimits* request, v1::SetLimitsReply*) {
  return to_grpc(set_limits(admissions_, admissions_.worker_of(), *request));
}

grpc::Status WorkerService::Revoke(grpc::ServerContext*, const v1::RevokeRequest*, v1::RevokeReply* reply) {
  admissions_.clear(admissions_.worker_of());
  reply->set_sessions(sessions_.end_all_of(admissions_.worker_of()));
  return grpc::Status::OK;
}

grpc::Status WorkerService::GetActivity(grpc::ServerContext*, const v1::ActivityRequest*, v1::ActivityReply* reply) {
  reply->set_keys(admissions_.size());
  reply->set_sessions(sessions_.size());
  reply->set_publications(sessions_.publications());
  const auto now = Clock::now();
  MutexLock lock(mutex_);
  if (reply->keys() + reply->sessions() + reply->publications() != 0) active_ = now;
  reply->set_idle_seconds(std::chrono::duration<double>(now - active_).count());
  return grpc::Status::OK;
}

}  // namespace tt::server
