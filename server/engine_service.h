// EngineService: teletensor.v1.Engine over gRPC; a thin shell over Sessions and Session.
//
// Synchronous: a stream's frames are executed on the stream's own thread, and not reading the stream is the
// back-pressure.
#pragma once

#include <grpcpp/support/proto_buffer_reader.h>

#include "server/auth.h"
#include "server/frame_buffer.h"
#include "server/sessions.h"
#include "teletensor/v1/engine.grpc.pb.h"

// How gRPC reads a FrameBuffer: bytes that are no frame are the session's to answer, so that this does not fail.
template <>
class grpc::SerializationTraits<tt::server::FrameBuffer> {
 public:
  static Status Deserialize(ByteBuffer* bytes, tt::server::FrameBuffer* frame) {
    frame->parse(bytes->Length(), [bytes](auto read) {
      ProtoBufferReader reader(bytes);
      return reader.status().ok() && read(&reader);
    });
    bytes->Clear();
    return Status::OK;
  }
};

namespace tt::server {

class EngineService final : public v1::Engine::Service {
 public:
  // Both outlive the service.
  EngineService(const Auth& auth, Sessions& sessions);

  grpc::Status Hello(grpc::ServerContext* context, const v1::HelloRequest* request, v1::HelloReply* reply) override;
  grpc::Status Upload(grpc::ServerContext* context, grpc::ServerReader<v1::UploadChunk>* reader,
                      v1::UploadReply* reply) override;
  grpc::Status Download(grpc::ServerContext* context, const v1::DownloadRequest* request,
                        grpc::ServerWriter<v1::DownloadChunk>* writer) override;
  grpc::Status Cancel(grpc::ServerContext* context, const v1::CancelRequest* request, v1::CancelReply* reply) override;

 private:
  using FrameStream = grpc::ServerReaderWriter<v1::Reply, FrameBuffer>;
  static constexpr int kSessionMethod = 1;  // by its place in engine.proto

  // Engine.Session, whose frames are counted before they are parsed.
  grpc::Status converse(grpc::ServerContext* context, FrameStream* stream);
  // Of the session that a call's metadata names; null, with `status` set, where there is none.
  std::shared_ptr<server::Session> session_of(const grpc::ServerContext& context, grpc::Status* status) const;

  const Auth& auth_;
  Sessions& sessions_;
};

// The metadata's value, or "".
absl::string_view metadata(const grpc::ServerContext& context, const char* name);
grpc::Status to_grpc(const absl::Status& status);

}  // namespace tt::server
