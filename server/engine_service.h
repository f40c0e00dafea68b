// EngineService: teletensor.v1.Engine over gRPC; a thin shell over Sessions and Session.
//
// Synchronous: a stream's frames are executed on the stream's own thread, and not reading the stream is the
// back-pressure.
#pragma once

#include "server/auth.h"
#include "server/sessions.h"
#include "teletensor/v1/engine.grpc.pb.h"

namespace tt::server {

class EngineService final : public v1::Engine::Service {
 public:
  // Both outlive the service.
  EngineService(const Auth& auth, Sessions& sessions) : auth_(auth), sessions_(sessions) {}

  grpc::Status Hello(grpc::ServerContext* context, const v1::HelloRequest* request, v1::HelloReply* reply) override;
  grpc::Status Session(grpc::ServerContext* context, grpc::ServerReaderWriter<v1::Reply, v1::Frame>* stream) override;
  grpc::Status Upload(grpc::ServerContext* context, grpc::ServerReader<v1::UploadChunk>* reader,
                      v1::UploadReply* reply) override;
  grpc::Status Download(grpc::ServerContext* context, const v1::DownloadRequest* request,
                        grpc::ServerWriter<v1::DownloadChunk>* writer) override;
  grpc::Status Cancel(grpc::ServerContext* context, const v1::CancelRequest* request, v1::CancelReply* reply) override;

 private:
  // Of the session that a call's metadata names; null, with `status` set, where there is none.
  std::shared_ptr<server::Session> session_of(const grpc::ServerContext& context, grpc::Status* status) const;

  const Auth& auth_;
  Sessions& sessions_;
};

// The metadata's value, or "".
absl::string_view metadata(const grpc::ServerContext& context, const char* name);
grpc::Status to_grpc(const absl::Status& status);

}  // namespace tt::server
