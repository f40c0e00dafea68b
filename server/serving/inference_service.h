// InferenceService: inference.GRPCInferenceService over gRPC; a thin layer over InferenceServer.
//
// Every call is admitted by its metadata before its request is read (unary.h). Probes (ServerLive, ServerReady) need no
// token, the repository's calls an operator's, and the others a user's or an operator's, unless the server is open.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>

#include "inference/grpc_service.grpc.pb.h"
#include "server/audit.h"
#include "server/rpc/call_admission.h"
#include "server/rpc/unary.h"
#include "server/serving/inference_server.h"

namespace tt::server {

class InferenceService final : public inference::GRPCInferenceService::Service {
 public:
  // All arguments must outlive the service.
  InferenceService(InferenceServer& server, CallAdmission& admission);

 private:
  using Right = InferenceServer::Right;
  // Registers a method by its place in the service's declaration. `run` returns the call's status.
  template <typename Request, typename Reply>
  void add(int index, Right right,
           std::function<absl::Status(const Principal& caller, const grpc::ServerContext&, const Request&, Reply*)> run,
           const RequestLimits& limits = {});
  // Requests are parsed once there is room for them among those in progress.
  grpc::Status infer(grpc::ServerContext* context, grpc::ByteBuffer* bytes, inference::ModelInferResponse* reply);
  using Stream = grpc::ServerReaderWriter<inference::ModelStreamInferResponse, grpc::ByteBuffer>;
  grpc::Status stream(grpc::ServerContext* context, Stream* stream);
  absl::Status answer(const Principal& caller, const grpc::ServerContext& context, grpc::ByteBuffer* bytes,
                      Stream* stream, inference::ModelInferRequest* request);

  InferenceServer& server_;
  CallAdmission& admission_;
};

}  // namespace tt::server
