// WorkerService: teletensor.v1.Worker, which an engine calls in a worker's process.
//
// Served only on the socket pair that the worker inherited, so its calls need no token. Thread-safe.
#pragma once

#include <chrono>

#include "base/mutex.h"
#include "server/rpc/admissions.h"
#include "server/session/sessions.h"
#include "teletensor/v1/worker.grpc.pb.h"

namespace tt::server {

class WorkerService final : public v1::Worker::Service {
 public:
  // Both must outlive the service.
  WorkerService(Admissions& admissions, Sessions& sessions) : admissions_(admissions), sessions_(sessions) {}

  grpc::Status Admit(grpc::ServerContext* context, const v1::AdmitRequest* request, v1::AdmitReply* reply) override;
  grpc::Status SetLimits(grpc::ServerContext* context, const v1::PrincipalLimits* request,
                         v1::SetLimitsReply* reply) override;
  grpc::Status Revoke(grpc::ServerContext* context, const v1::RevokeRequest* request, v1::RevokeReply* reply) override;
  grpc::Status GetActivity(grpc::ServerContext* context, const v1::ActivityRequest* request,
                           v1::ActivityReply* reply) override;

 private:
  using Clock = std::chrono::steady_clock;

  Admissions& admissions_;
  Sessions& sessions_;
  Mutex mutex_;
  Clock::time_point active_ ABSL_GUARDED_BY(mutex_) = Clock::now();
};

// Converts the limits of a principal of the engine's file, and back. `quota` may be null.
v1::PrincipalLimits to_wire(const Principal& principal);
QuotaLimits quota_limits(const v1::PrincipalLimits& limits);
// Sets a principal's limits; adds the key of a request, after setting the limits in it. RESOURCE_EXHAUSTED and
// INVALID_ARGUMENT as from Admissions.
absl::Status set_limits(Admissions& admissions, const std::string& principal, const v1::PrincipalLimits& limits);
absl::Status admit(Admissions& admissions, const std::string& principal, const v1::AdmitRequest& request);

}  // namespace tt::server
