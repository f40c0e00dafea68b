// AdminService: teletensor.v1.Admin over gRPC. Every call shows the engine's token.
#pragma once

#include <chrono>
#include <functional>

#include "server/auth.h"
#include "server/sessions.h"
#include "teletensor/v1/admin.grpc.pb.h"

namespace tt::server {

class AdminService final : public v1::Admin::Service {
 public:
  // `exit` asks the process to shut down; it returns at once. All outlive the service.
  AdminService(const Auth& auth, Sessions& sessions, std::function<void()> exit)
      : auth_(auth), sessions_(sessions), exit_(std::move(exit)) {}

  grpc::Status Status(grpc::ServerContext* context, const v1::StatusRequest* request, v1::StatusReply* reply) override;
  grpc::Status EmptyCache(grpc::ServerContext* context, const v1::EmptyCacheRequest* request,
                          v1::EmptyCacheReply* reply) override;
  grpc::Status Snapshot(grpc::ServerContext* context, const v1::SnapshotRequest* request,
                        v1::SnapshotReply* reply) override;
  grpc::Status Drain(grpc::ServerContext* context, const v1::DrainRequest* request, v1::DrainReply* reply) override;

 private:
  grpc::Status check(const grpc::ServerContext& context) const;

  const Auth& auth_;
  Sessions& sessions_;
  const std::function<void()> exit_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace tt::server
