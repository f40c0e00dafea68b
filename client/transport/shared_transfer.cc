// GrpcTransport's transfers through shared memory. A gRPC call starts and ends each transfer; the bytes bypass gRPC.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/transport/call_events.h"
#include "client/transport/grpc_call.h"
#include "client/transport/grpc_transport.h"

namespace tt::client {
namespace {

absl::Status outcome(const grpc::ClientContext& context, const grpc::Status& status, const absl::Status& moved) {
  if (status.ok()) return moved;
  // If this client cancelled the call, the lane's error is more precise than the call's.
  if (status.error_code() == grpc::StatusCode::CANCELLED && absl::IsDataLoss(moved)) return moved;
  return transfer_status(status, context);
}

// State of a transfer that gRPC may still use.
struct Transfer {
  Transfer(GrpcTransport& transport, const std::string& session_key) : call(transport, session_key) {}
  GrpcTransport::Call call;
  CallEvents events{call.context};
  grpc::Status status;
};

}  // namespace

absl::Status GrpcTransport::upload_shared(v1::Engine::Stub& stub, Connection& connection, v1::UploadChunk first,
                                          absl::Span<const char> bytes) {
  struct State : Transfer {
    using Transfer::Transfer;
    v1::UploadReply reply;
    std::unique_ptr<grpc::ClientAsyncWriter<v1::UploadChunk>> writer;
  };
  CallPointer<State> state(new State(*this, connection.session_key));
  CallEvents& events = state->events;
  state->writer =
      stub.AsyncUpload(&state->call.context, &state->reply, &events.queue, CallEvents::tag(CallEvents::kStarted));
  absl::Status moved = absl::UnavailableError("the transfer's call could not be started");
  bool started = events.wait(CallEvents::kStarted);
  if (started) {
    first.set_through_shared_memory(true);
    first.set_segment(connection.memory->nonce());
    state->writer->WriteLast(first, {}, CallEvents::tag(CallEvents::kMoved));
    started = events.wait(CallEvents::kMoved);
  }
  state->writer->Finish(&state->status, CallEvents::tag(CallEvents::kFinished));
  if (started) {
    moved = connection.memory->write(
        bytes, [&] { return events.is_running(); }, [&] { return events.check_interrupt(); });
    if (!moved.ok()) state->call.context.TryCancel();
  } else if (events.interrupted()) {
    connection.memory->abandon_upload();
  }
  events.wait(CallEvents::kFinished);
  // The engine has not read all bytes: it refused the transfer, or the connection broke.
  if (started && !state->status.ok()) connection.memory->abandon_upload();
  events.throw_if_interrupted();
  if (moved.ok() && state->status.ok() && state->reply.bytes() != bytes.size()) {
    return absl::DataLossError(
        absl::StrCat("the engine received ", state->reply.bytes(), " of ", bytes.size(), " bytes"));
  }
  return outcome(state->call.context, state->status, moved);
}

absl::Status GrpcTransport::download_shared(Connection& connection, const v1::DownloadRequest& request,
                                            absl::Span<char> into, v1::Error* error) {
  struct State : Transfer {
    using Transfer::Transfer;
    v1::DownloadChunk first;
    std::unique_ptr<grpc::ClientAsyncReader<v1::DownloadChunk>> reader;
  };
  CallPointer<State> state(new State(*this, connection.session_key));
  CallEvents& events = state->events;
  state->reader = connection.stub->AsyncDownload(&state->call.context, request, &events.queue,
                                                 CallEvents::tag(CallEvents::kStarted));
  absl::Status moved = absl::UnavailableError("the transfer's call could not be started");
  bool arrived = events.wait(CallEvents::kStarted);
  if (arrived) {
    state->reader->Read(&state->first, CallEvents::tag(CallEvents::kMoved));
    arrived = events.wait(CallEvents::kMoved);
  }
  state->reader->Finish(&state->status, CallEvents::tag(CallEvents::kFinished));
  if (arrived && state->first.has_error()) {
    error->Swap(state->first.mutable_error());
    moved = absl::OkStatus();
  } else if (arrived) {
    moved = connection.memory->read(
        into, [&] { return events.is_running(); }, [&] { return events.check_interrupt(); });
    if (!moved.ok()) state->call.context.TryCancel();
  } else {
    connection.memory->abandon_download();  // the engine may have begun to fill the lane
  }
  events.wait(CallEvents::kFinished);
  events.throw_if_interrupted();
  return outcome(state->call.context, state->status, moved);
}

}  // namespace tt::client
