// AdminService: teletensor.v1.Admin over gRPC.
//
// Status accepts both tokens, but its reply to a holder of the user token omits fields about the sessions' programs.
// Every other call requires the admin token. The calls have a separate quota (call_admission.h), so they are answered
// even when the engine is busy.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "server/admin/sampler.h"
#include "server/admin/status.h"
#include "server/audit.h"
#include "server/rpc/admissions.h"
#include "server/rpc/auth.h"
#include "server/rpc/call_admission.h"
#include "server/session/sessions.h"
#include "server/trace/tracer.h"
#include "server/workers/workers.h"
#include "teletensor/v1/admin.grpc.pb.h"

namespace tt::server {

class AdminService final : public v1::Admin::Service {
 public:
  // Of an engine in which a front engine places sessions: the keys by which they are opened, and the principal as whom
  // that engine calls.
  struct Placed {
    Admissions* admissions = nullptr;  // null: none does
    std::string by{};
  };

  // `exit` requests the process to shut down and returns at once. All arguments must outlive the service.
  // `tracer` receives spans of the calls; null: there are none. `workers` serve the sessions; null: this process does.
  // `upgrade` replaces the process; empty: it cannot be replaced.
  using Replace = std::function<absl::StatusOr<v1::UpgradeReply>(const v1::UpgradeRequest&)>;
  AdminService(const Auth& auth, Sessions& sessions, CallAdmission& admission, AuditLog& audit,
               const EngineStatus& status, std::shared_ptr<Tracer> tracer, std::function<void()> exit, Workers* workers,
               Placed placed, Replace upgrade);

  // These handlers run only after the call's token has been checked.

  grpc::Status Status(grpc::ServerContext* context, const v1::StatusRequest* request, v1::StatusReply* reply) override;
  grpc::Status EmptyCache(grpc::ServerContext* context, const v1::EmptyCacheRequest* request,
                          v1::EmptyCacheReply* reply) override;
  grpc::Status Snapshot(grpc::ServerContext* context, const v1::SnapshotRequest* request,
                        v1::SnapshotReply* reply) override;
  grpc::Status Drain(grpc::ServerContext* context, const v1::DrainRequest* request, v1::DrainReply* reply) override;
  grpc::Status EndSession(grpc::ServerContext* context, const v1::EndSessionRequest* request,
                          v1::EndSessionReply* reply) override;
  grpc::Status Profile(grpc::ServerContext* context, const v1::ProfileRequest* request,
                       v1::ProfileReply* reply) override;
  grpc::Status Admit(grpc::ServerContext* context, const v1::AdmitRequest* request, v1::AdmitReply* reply) override;
  grpc::Status Revoke(grpc::ServerContext* context, const v1::RevokeRequest* request, v1::RevokeReply* reply) override;
  grpc::Status Upgrade(grpc::ServerContext* context, const v1::UpgradeRequest* request,
                       v1::UpgradeReply* reply) override;

 private:
  template <typename Request, typename Reply>
  using Method = grpc::Status (AdminService::*)(grpc::ServerContext*, const Request*, Reply*);
  // Who may call a method.
  enum class Access { kAnyPrincipal, kObserversAndOperators, kOperators };
  template <typename Request, typename Reply>
  grpc::internal::MethodHandler* handler(const char* name, Access access, Method<Request, Reply> method);
  void drain_workers(const grpc::ServerContext& context, const v1::DrainRequest& request);
  absl::Status check(const grpc::ServerContext& context, Access access) const;
  // Whether a front engine calls, for one of its principals.
  absl::Status check_placement(const grpc::ServerContext& context, const std::string& principal) const;
  // Records the span of a call. Calls that only read the engine's state are frequent, so they are sampled.
  void trace(const char* name, Access access, const grpc::ServerContext& context, const grpc::Status& status,
             std::chrono::nanoseconds duration);

  const Auth& auth_;
  Sessions& sessions_;
  CallAdmission& admission_;
  AuditLog& audit_;
  const EngineStatus& status_;
  const std::shared_ptr<Tracer> tracer_;
  const std::function<void()> exit_;
  Workers* const workers_;
  const Placed placed_;
  const Replace upgrade_;
  std::atomic<uint64_t> calls_{0};  // number of the last traced call
};

}  // namespace tt::server
