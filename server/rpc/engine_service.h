// EngineService: teletensor.v1.Engine over gRPC; a thin layer over Sessions and Session.
//
// Synchronous: a stream's frames are executed on the stream's thread, and back-pressure results from not reading the
// stream. Every call is admitted by its metadata, before its body is read (unary.h).
#pragma once

#include <grpcpp/support/proto_buffer_reader.h>

#include "server/audit.h"
#include "server/rpc/admissions.h"
#include "server/rpc/auth.h"
#include "server/rpc/call_admission.h"
#include "server/rpc/frame_buffer.h"
#include "server/rpc/placement.h"
#include "server/session/sessions.h"
#include "teletensor/v1/engine.grpc.pb.h"

// Makes gRPC parse messages into a FrameBuffer. Never fails; the session replies to a malformed frame with a fault.
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
  // Where sessions are opened: in this process by callers that `auth` knows, unless one of the two is set.
  struct Isolation {
    Placement* placement = nullptr;    // of an engine that redirects its clients to workers or other engines
    Admissions* admissions = nullptr;  // of such a worker, which knows callers only by keys, or such an engine
  };

  // All arguments must outlive the service.
  EngineService(const Auth& auth, Sessions& sessions, CallAdmission& admission, AuditLog& audit,
                const Isolation& isolation);

  // Requires that the call's token or key has been checked.
  grpc::Status Hello(grpc::ServerContext* context, const v1::HelloRequest* request, v1::HelloReply* reply) override;
  grpc::Status Upload(grpc::ServerContext* context, grpc::ServerReader<v1::UploadChunk>* reader,
                      v1::UploadReply* reply) override;
  grpc::Status Cancel(grpc::ServerContext* context, const v1::CancelRequest* request, v1::CancelReply* reply) override;
  grpc::Status Persist(grpc::ServerContext* context, const v1::PersistRequest* request,
                       v1::PersistReply* reply) override;

 private:
  class Attachment;
  using FrameStream = grpc::ServerReaderWriter<v1::Reply, FrameBuffer>;
  using DownloadStream = grpc::ServerSplitStreamer<v1::DownloadRequest, v1::DownloadChunk>;
  using DownloadWriter = grpc::internal::WriterInterface<v1::DownloadChunk>;

  // Whether the call may run Hello, by its metadata.
  absl::StatusOr<CallAdmission::Holder> check_hello(const grpc::ServerContext& context) const;
  bool comes_by_key(const grpc::ServerContext& context) const;
  // Hello of an engine that redirects, and where it redirects to.
  absl::Status redirect(const grpc::ServerContext& context, const Principal& caller, const v1::HelloRequest& request,
                        v1::HelloReply* reply);
  grpc::Status hello_by_key(grpc::ServerContext* context, const v1::HelloRequest& request, v1::HelloReply* reply);
  // Implements Engine.Session; frames are measured before they are parsed.
  grpc::Status serve_session(grpc::ServerContext* context, FrameStream* stream);
  // The same for a client on this host that writes frames to the pipes of the segment with this nonce.
  grpc::Status serve_pipes(grpc::ServerContext* context, FrameStream* stream, absl::string_view nonce,
                           const Attachment& attachment);
  // Executes the frames of a FrameStream or PipeStream until it ends. Returns the status of a refused frame.
  template <typename Stream>
  grpc::Status execute_frames(grpc::ServerContext* context, Stream* stream, const Attachment& attachment);
  grpc::Status serve_download(grpc::ServerContext* context, DownloadStream* stream);
  grpc::Status answer_download(grpc::ServerContext* context, server::Session& session,
                               const v1::DownloadRequest& request, DownloadWriter* writer);
  absl::StatusOr<CallAdmission::Slot> admit(grpc::ServerContext& context, CallAdmission::Kind kind,
                                            const server::Session& session);
  // Returns the session that the call's metadata names. If there is none, refuses the call, sets `status` and returns
  // null.
  std::shared_ptr<server::Session> session_of(grpc::ServerContext& context, grpc::Status* status) const;

  const Auth& auth_;
  Sessions& sessions_;
  CallAdmission& admission_;
  AuditLog& audit_;
  const Isolation isolation_;
};

// Returns what the call presents for Auth. Valid as long as the context.
Auth::Credentials credentials_of(const grpc::ServerContext& context);
// Returns the metadata value, or "".
absl::string_view metadata(const grpc::ServerContext& context, const char* name);
// The caller, whose calls are counted together, if it may do what `least` and higher roles may; errors as of Auth.
absl::StatusOr<CallAdmission::Holder> holder_of_caller(const Auth& auth, const grpc::ServerContext& context,
                                                       Role least);
grpc::Status to_grpc(const absl::Status& status);

}  // namespace tt::server
