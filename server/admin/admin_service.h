// AdminService: teletensor.v1.Admin over gRPC.
//
// Status is for both tokens, and shows the user token nothing of others' programs; every other call needs the admin
// token. The calls have a quota of their own (gate.h), so they are answered however busy the engine is.
#pragma once

#include <chrono>
#include <functional>

#include "server/rpc/auth.h"
#include "server/rpc/gate.h"
#include "server/session/sessions.h"
#include "teletensor/v1/admin.grpc.pb.h"

namespace tt::server {

class AdminService final : public v1::Admin::Service {
 public:
  // `exit` asks the process to shut down; it returns at once. All outlive the service.
  AdminService(const Auth& auth, Sessions& sessions, Gate& gate, std::function<void()> exit);

  // The calls' tokens have been checked when these run.

  grpc::Status Status(grpc::ServerContext* context, const v1::StatusRequest* request, v1::StatusReply* reply) override;
  grpc::Status EmptyCache(grpc::ServerContext* context, const v1::EmptyCacheRequest* request,
                          v1::EmptyCacheReply* reply) override;
  grpc::Status Snapshot(grpc::ServerContext* context, const v1::SnapshotRequest* request,
                        v1::SnapshotReply* reply) override;
  grpc::Status Drain(grpc::ServerContext* context, const v1::DrainRequest* request, v1::DrainReply* reply) override;
  grpc::Status EndSession(grpc::ServerContext* context, const v1::EndSessionRequest* request,
                          v1::EndSessionReply* reply) override;

 private:
  template <typename Request, typename Reply>
  using Method = grpc::Status (AdminService::*)(grpc::ServerContext*, const Request*, Reply*);
  template <typename Request, typename Reply>
  grpc::internal::MethodHandler* handler(Auth::Role role, Method<Request, Reply> method);

  const Auth& auth_;
  Sessions& sessions_;
  Gate& gate_;
  const std::function<void()> exit_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace tt::server
