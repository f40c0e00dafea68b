// InferenceService: inference.GRPCInferenceService over gRPC; a thin layer over InferenceServer.
//
// Every call is admitted by its metadata before its request is read (unary.h). Probes (ServerLive, ServerReady) need no
// token, the repository's calls an operator's, and the others a user's or an operator's, unless the server is open.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <optional>
#include <string>

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
  absl::StatusOr<CallAdmission::Holder> holder_of(const grpc::ServerContext& context, Right right) const;
  // Registers a method by its place in the service's declaration. `run` returns the call's status.
  template <typename Request, typename Reply>
  void add(int index, Right right,
           std::function<absl::Status(const Principal& caller, const grpc::ServerContext&, const Request&, Reply*)> run,
           const RequestLimits& limits = {});
  // The message of an answer, which replaces `reply`, compressed if `coding` says so and there is room for that.
  grpc::ByteBuffer answer(grpc::ServerContext* context, ContentCoding coding, absl::string_view caller,
                          google::protobuf::Message* reply, InferenceServer::Kept kept);
  absl::Status reserve(absl::Span<const InferOutput> outputs, absl::string_view caller,
                       InferenceServer::Inflight* charged);
  // Requests are parsed once there is room for them among those in progress.
  grpc::Status infer(grpc::ServerContext* context, grpc::ByteBuffer* bytes, grpc::ByteBuffer* reply);
  using Stream = grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
  struct StreamedCall {
    grpc::ServerContext* context;
    Stream* stream;
    std::string caller;                        // who is charged
    std::optional<ContentCoding> coding = {};  // of its answers, as its first request is compressed
    bool has_sent = false;
  };
  grpc::Status stream(grpc::ServerContext* context, Stream* stream);
  absl::Status answer_one(const Principal& caller, StreamedCall* call, grpc::ByteBuffer* bytes,
                          inference::ModelInferRequest* request);
  bool send(StreamedCall* call, inference::ModelStreamInferResponse* response, InferenceServer::Inflight charged);

  InferenceServer& server_;
  CallAdmission& admission_;
};

}  // namespace tt::server
