// EngineService: teletensor.v1.Engine over gRPC; a thin shell over Sessions and Session.
//
// Synchronous: a stream's frames are executed on the stream's own thread, and not reading the stream is the
// back-pressure. Every call is admitted by its metadata alone, before anything of its body is read (unary.h).
#pragma once

#include "server/auth.h"
#include "server/gate.h"
#include "server/sessions.h"
#include "teletensor/v1/engine.grpc.pb.h"

namespace tt::server {

class EngineService final : public v1::Engine::Service {
 public:
  // All outlive the service.
  EngineService(const Auth& auth, Sessions& sessions, Gate& gate);

  // Requires that the call's token has been checked.
  grpc::Status Hello(grpc::ServerContext* context, const v1::HelloRequest* request, v1::HelloReply* reply) override;
  grpc::Status Session(grpc::ServerContext* context, grpc::ServerReaderWriter<v1::Reply, v1::Frame>* stream) override;
  grpc::Status Upload(grpc::ServerContext* context, grpc::ServerReader<v1::UploadChunk>* reader,
                      v1::UploadReply* reply) override;

 private:
  using DownloadWriter = grpc::internal::WriterInterface<v1::DownloadChunk>;
  absl::StatusOr<Gate::Slot> admit(grpc::ServerContext& context, Gate::Kind kind, const server::Session& session);
  grpc::Status serve_download(grpc::ServerContext* context,
                              grpc::ServerSplitStreamer<v1::DownloadRequest, v1::DownloadChunk>* stream);
  grpc::Status answer_download(grpc::ServerContext* context, const v1::DownloadRequest* request,
                               DownloadWriter* writer);
  // Of the session that a call's metadata names; null, with `status` set and the call refused, where there is none.
  std::shared_ptr<server::Session> session_of(grpc::ServerContext& context, grpc::Status* status) const;

  const Auth& auth_;
  Sessions& sessions_;
  Gate& gate_;
};

// The metadata's value, or "".
absl::string_view metadata(const grpc::ServerContext& context, const char* name);
grpc::Status to_grpc(const absl::Status& status);

}  // namespace tt::server
