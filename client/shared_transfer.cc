// GrpcTransport's transfers through shared memory: a call begins and ends each, the bytes go beside it.
#include <chrono>

#include "absl/strings/str_cat.h"
#include "client/grpc_call.h"
#include "client/grpc_transport.h"

namespace tt::client {
namespace {

// The events of one asynchronous call. Polled by the thread that moves the bytes, so that it sees the call fail.
class Events {
 public:
  enum Tag : intptr_t { kStarted = 1, kMoved, kFinished };
  static void* tag(Tag t) { return reinterpret_cast<void*>(t); }

  ~Events() {
    queue.Shutdown();
    void* t;
    bool ok;
    while (queue.Next(&t, &ok)) continue;
  }
  // Blocks until `t` has happened; false where that failed. Others that happen first are remembered.
  bool wait(Tag t) {
    while (!happened_[t]) {
      void* next;
      bool ok;
      if (!queue.Next(&next, &ok)) return false;
      note(next, ok);
    }
    return ok_[t];
  }
  // Whether the call goes on; does not block.
  bool goes_on() {
    void* next;
    bool ok;
    while (queue.AsyncNext(&next, &ok, std::chrono::system_clock::now()) == grpc::CompletionQueue::GOT_EVENT) {
      note(next, ok);
    }
    return !happened_[kFinished];
  }

  grpc::CompletionQueue queue;

 private:
  void note(void* t, bool ok) {
    happened_[reinterpret_cast<intptr_t>(t)] = true;
    ok_[reinterpret_cast<intptr_t>(t)] = ok;
  }
  bool happened_[kFinished + 1] = {};
  bool ok_[kFinished + 1] = {};
};

absl::Status outcome(const grpc::ClientContext& context, const grpc::Status& status, const absl::Status& moved) {
  if (status.ok()) return moved;
  // What the lane saw of a call that we cancelled is the better account.
  if (status.error_code() == grpc::StatusCode::CANCELLED && absl::IsDataLoss(moved)) return moved;
  return to_status(status, context);
}

}  // namespace

absl::Status GrpcTransport::upload_shared(Connection& connection, v1::UploadChunk first, absl::Span<const char> bytes) {
  Call call(*this, connection.session_key);
  Events events;
  v1::UploadReply reply;
  auto writer = connection.stub->AsyncUpload(&call.context, &reply, &events.queue, Events::tag(Events::kStarted));
  grpc::Status status;
  absl::Status moved = absl::UnavailableError("the call did not start");
  if (events.wait(Events::kStarted)) {
    first.set_through_shared_memory(true);
    writer->WriteLast(first, {}, Events::tag(Events::kMoved));
    if (events.wait(Events::kMoved)) {
      writer->Finish(&status, Events::tag(Events::kFinished));
      moved = connection.memory->write(bytes, [&] { return events.goes_on(); });
      if (!moved.ok()) call.context.TryCancel();
      events.wait(Events::kFinished);
      if (moved.ok() && status.ok() && reply.bytes() != bytes.size()) {
        return absl::DataLossError(absl::StrCat("the engine took ", reply.bytes(), " of ", bytes.size(), " bytes"));
      }
      return outcome(call.context, status, moved);
    }
  }
  writer->Finish(&status, Events::tag(Events::kFinished));
  events.wait(Events::kFinished);
  return outcome(call.context, status, moved);
}

absl::Status GrpcTransport::download_shared(Connection& connection, const v1::DownloadRequest& request,
                                            absl::Span<char> into, v1::Error* error) {
  Call call(*this, connection.session_key);
  Events events;
  auto reader = connection.stub->AsyncDownload(&call.context, request, &events.queue, Events::tag(Events::kStarted));
  grpc::Status status;
  v1::DownloadChunk first;
  absl::Status moved = absl::UnavailableError("the call did not start");
  bool arrived = events.wait(Events::kStarted);
  if (arrived) {
    reader->Read(&first, Events::tag(Events::kMoved));
    arrived = events.wait(Events::kMoved);
  }
  reader->Finish(&status, Events::tag(Events::kFinished));
  if (arrived && first.has_error()) {
    error->Swap(first.mutable_error());
    moved = absl::OkStatus();
  } else if (arrived) {
    moved = connection.memory->read(into, [&] { return events.goes_on(); });
    if (!moved.ok()) call.context.TryCancel();
  }
  events.wait(Events::kFinished);
  return outcome(call.context, status, moved);
}

}  // namespace tt::client
