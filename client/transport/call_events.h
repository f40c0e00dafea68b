// CallEvents: the completion queue of one asynchronous gRPC call that one thread makes and waits for.
//
// An interrupt of that thread cancels the call; the waits then return at once, and throw_if_interrupted() says so. A
// cancelled call usually ends at once too. Where the peer does not read, gRPC holds on to what was to be sent until the
// connection ends: nothing waits for that, and what belongs to the call lives in a CallPointer, which leaves it to
// gRPC. Used by one thread, but for goes_on().
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "client/connection/interruption.h"

namespace tt::client {

inline gpr_timespec deadline_after(std::chrono::milliseconds patience) {
  if (patience == std::chrono::milliseconds::max()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(patience.count(), GPR_TIMESPAN));
}

// How long a cancelled call is given to end.
inline constexpr std::chrono::milliseconds kCancelGrace{100};

// Takes what is left in a queue that was shut down; false where that is not all within a moment.
inline bool drain_queue(grpc::CompletionQueue& queue) {
  const gpr_timespec deadline = deadline_after(kCancelGrace);
  for (;;) {
    void* t;
    bool ok;
    auto next = queue.AsyncNext(&t, &ok, deadline);
    if (next != grpc::CompletionQueue::GOT_EVENT) return next == grpc::CompletionQueue::SHUTDOWN;
  }
}

class CallEvents {
 public:
  // Of one call; each is started at most once at a time.
  enum Tag : intptr_t { kStarted, kMetadata, kMoved, kFinished, kTags };
  static void* tag(Tag t) { return reinterpret_cast<void*>(t); }

  explicit CallEvents(grpc::ClientContext& context) : context_(context) {}
  CallEvents(const CallEvents&) = delete;
  CallEvents& operator=(const CallEvents&) = delete;

  // Blocks until `t` has happened, and forgets it; false where that failed, or the call was cancelled and does not end.
  // Others that happen first are remembered.
  bool wait(Tag t) {
    while (!happened_[t]) {
      ask_interrupt();
      if (!poll(interrupted_ ? kCancelGrace : timer_.patience()) && interrupted_) return false;
    }
    happened_[t] = false;
    return ok_[t];
  }
  // As wait; false, too, where it takes longer than `patience`.
  bool wait_for(Tag t, std::chrono::milliseconds patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!happened_[t]) {
      ask_interrupt();
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      if (!poll(interrupted_ ? kCancelGrace : std::min(left, timer_.patience())) && interrupted_) return false;
    }
    return wait(t);
  }
  // Asks for an interrupt where it is time; true after one.
  bool ask_interrupt() {
    if (!interrupted_ && timer_.is_due() && client::interrupted()) cancel();
    return interrupted_;
  }
  // Whether the call goes on; does not block. From any thread that helps with the call's bytes, one at a time.
  bool goes_on() {
    void* next;
    bool ok;
    while (queue.AsyncNext(&next, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC)) == grpc::CompletionQueue::GOT_EVENT) {
      note(next, ok);
    }
    return !happened_[kFinished] && !(is_interruptible() && ask_interrupt());
  }
  bool interrupted() const { return interrupted_; }
  // Ends the call, where it has not ended; false where gRPC still holds on to it after a moment. Nothing may be waited
  // for any more.
  bool drain() {
    context_.TryCancel();
    queue.Shutdown();
    return drain_queue(queue);
  }
  // After the call's end.
  void throw_if_interrupted() const {
    if (interrupted_) throw Interrupted();
  }

  grpc::CompletionQueue queue;

 private:
  // Takes the next event; false where there is none within `patience`.
  bool poll(std::chrono::milliseconds patience) {
    void* t;
    bool ok;
    if (queue.AsyncNext(&t, &ok, deadline_after(patience)) != grpc::CompletionQueue::GOT_EVENT) return false;
    note(t, ok);
    return true;
  }
  void cancel() {
    interrupted_ = true;
    context_.TryCancel();
  }
  void note(void* t, bool ok) {
    happened_[reinterpret_cast<intptr_t>(t)] = true;
    ok_[reinterpret_cast<intptr_t>(t)] = ok;
  }

  grpc::ClientContext& context_;
  InterruptTimer timer_;
  bool happened_[kTags] = {};
  bool ok_[kTags] = {};
  bool interrupted_ = false;
};

// Owns what an asynchronous call uses (a struct with a member `events`) until gRPC is through with it: for ever, where
// it is not by the time that the owner goes.
struct EndCall {
  template <typename State>
  void operator()(State* state) const {
    if (state->events.drain()) delete state;
  }
};
template <typename State>
using CallPointer = std::unique_ptr<State, EndCall>;

// A call with one request and one reply, which takes `patience` at most. `prepare(context)` adds its metadata,
// `start(context, queue)` is the stub's Async method. Throws Interrupted.
template <typename Reply, typename Prepare, typename Start>
grpc::Status call_unary(std::chrono::milliseconds patience, Prepare prepare, Start start, Reply* reply) {
  struct State {
    grpc::ClientContext context;
    CallEvents events{context};
    grpc::Status status;
    Reply reply;
    std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> call;
  };
  CallPointer<State> state(new State);
  state->context.set_deadline(std::chrono::system_clock::now() + patience);
  prepare(state->context);
  state->call = start(&state->context, &state->events.queue);
  state->call->Finish(&state->reply, &state->status, CallEvents::tag(CallEvents::kFinished));
  const bool finished = state->events.wait_for(CallEvents::kFinished, patience + kInterruptInterval);
  state->events.throw_if_interrupted();
  if (!finished) return grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "the engine does not read");
  reply->Swap(&state->reply);
  return state->status;
}

}  // namespace tt::client
