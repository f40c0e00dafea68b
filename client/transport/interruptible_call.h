// Reader and Writer: gRPC's synchronous ClientReader and ClientWriter with interruptible waits.
//
// An interrupt of the calling thread cancels the call: Read, Write and WaitForInitialMetadata return false, and Finish
// throws Interrupted. Used by one thread. Finish is required and must be the last call.
#pragma once

#include <memory>
#include <string>

#include "client/transport/call_events.h"
#include "client/transport/grpc_call.h"

namespace tt::client {

template <typename Chunk>
class InterruptibleReader {
 public:
  // `start(context, queue, tag)` starts the call, as the stub's Async method does.
  template <typename Start>
  InterruptibleReader(GrpcTransport& transport, const std::string& session_key, Start start)
      : state_(new State(transport, session_key)) {
    state_->call = start(&state_->context.context, &state_->events.queue, CallEvents::tag(CallEvents::kStarted));
    open_ = state_->events.wait(CallEvents::kStarted);
  }
  bool Read(Chunk* chunk) {
    if (!open_) return false;
    state_->call->Read(&state_->chunk, CallEvents::tag(CallEvents::kMoved));
    if (!(open_ = state_->events.wait(CallEvents::kMoved))) return false;
    chunk->Swap(&state_->chunk);
    return true;
  }
  void TryCancel() { state_->context.context.TryCancel(); }
  // Contains the engine's metadata after Finish.
  const grpc::ClientContext& context() const { return state_->context.context; }
  grpc::Status Finish() {
    state_->call->Finish(&state_->status, CallEvents::tag(CallEvents::kFinished));
    state_->events.wait(CallEvents::kFinished);
    state_->events.throw_if_interrupted();
    return state_->status;
  }

 private:
  struct State {
    State(GrpcTransport& transport, const std::string& session_key) : context(transport, session_key) {}
    GrpcTransport::Call context;
    CallEvents events{context.context};
    Chunk chunk;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncReader<Chunk>> call;
  };
  CallPointer<State> state_;
  bool open_;
};

template <typename Chunk, typename Reply>
class InterruptibleWriter {
 public:
  // `start(context, reply, queue, tag)` starts the call, as the stub's Async method does.
  template <typename Start>
  InterruptibleWriter(GrpcTransport& transport, const std::string& session_key, Start start)
      : state_(new State(transport, session_key)) {
    state_->call =
        start(&state_->context.context, &state_->reply, &state_->events.queue, CallEvents::tag(CallEvents::kStarted));
    open_ = state_->events.wait(CallEvents::kStarted);
  }
  bool Write(const Chunk& chunk) {
    if (!open_) return false;
    state_->call->Write(chunk, CallEvents::tag(CallEvents::kMoved));
    return open_ = state_->events.wait(CallEvents::kMoved);
  }
  // Call at most once, before or after a Write. If it returns true, context() has the engine's initial metadata.
  bool WaitForInitialMetadata() {
    if (!open_) return false;
    state_->call->ReadInitialMetadata(CallEvents::tag(CallEvents::kMetadata));
    return open_ = state_->events.wait(CallEvents::kMetadata);
  }
  void TryCancel() { state_->context.context.TryCancel(); }
  const grpc::ClientContext& context() const { return state_->context.context; }
  void WritesDone() {
    if (!open_) return;
    state_->call->WritesDone(CallEvents::tag(CallEvents::kMoved));
    open_ = state_->events.wait(CallEvents::kMoved);
  }
  grpc::Status Finish(Reply* reply) {
    state_->call->Finish(&state_->status, CallEvents::tag(CallEvents::kFinished));
    state_->events.wait(CallEvents::kFinished);
    state_->events.throw_if_interrupted();
    reply->Swap(&state_->reply);
    return state_->status;
  }

 private:
  struct State {
    State(GrpcTransport& transport, const std::string& session_key) : context(transport, session_key) {}
    GrpcTransport::Call context;
    CallEvents events{context.context};
    Reply reply;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncWriter<Chunk>> call;
  };
  CallPointer<State> state_;
  bool open_;
};

}  // namespace tt::client
