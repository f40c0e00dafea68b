// CallEvents: completion queue of one asynchronous gRPC call, driven by one thread.
//
// An interrupt of that thread cancels the call; the waits then return at once, and throw_if_interrupted() throws. A
// cancelled call usually ends at once too. If the peer does not read, gRPC keeps the outgoing data until the connection
// ends. No function waits for the end of the connection: a CallPointer owns the call's state and leaks it if gRPC still
// uses it. Used by one thread, except is_running().
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "client/connection/interruption.h"

namespace tt::client {

inline gpr_timespec deadline_after(std::chrono::milliseconds timeout) {
  if (timeout == std::chrono::milliseconds::max()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(timeout.count(), GPR_TIMESPAN));
}

// Time that a cancelled call has to end.
inline constexpr std::chrono::milliseconds kCancelGrace{100};

// Drains a queue that was shut down. Returns false if the queue is not empty after kCancelGrace.
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
  // Operations of the call. At most one of each kind is in progress.
  enum Tag : intptr_t { kStarted, kMetadata, kMoved, kFinished, kTags };
  static void* tag(Tag t) { return reinterpret_cast<void*>(t); }

  explicit CallEvents(grpc::ClientContext& context) : context_(context) {}
  CallEvents(const CallEvents&) = delete;
  CallEvents& operator=(const CallEvents&) = delete;

  // Blocks until operation `t` has completed, and clears its event. Returns false if the operation failed, or if the
  // call was cancelled and does not end. Events that happen earlier are kept for later waits.
  bool wait(Tag t) {
    while (!happened_[t]) {
      check_interrupt();
      if (!poll(interrupted_ ? kCancelGrace : timer_.max_sleep()) && interrupted_) return false;
    }
    happened_[t] = false;
    return ok_[t];
  }
  // Like wait, but also returns false after `timeout`.
  bool wait_for(Tag t, std::chrono::milliseconds timeout) {
    const auto until = std::chrono::steady_clock::now() + timeout;
    while (!happened_[t]) {
      check_interrupt();
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      if (!poll(interrupted_ ? kCancelGrace : std::min(left, timer_.max_sleep())) && interrupted_) return false;
    }
    return wait(t);
  }
  // Checks for an interrupt if the interval has passed. Returns true after an interrupt.
  bool check_interrupt() {
    if (!interrupted_ && timer_.is_due() && client::interrupted()) cancel();
    return interrupted_;
  }
  // Whether the call is still running; does not block. May be called by any thread that copies the call's bytes, one at
  // a time.
  bool is_running() {
    void* next;
    bool ok;
    while (queue.AsyncNext(&next, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC)) == grpc::CompletionQueue::GOT_EVENT) {
      record_event(next, ok);
    }
    return !happened_[kFinished] && !(is_interruptible() && check_interrupt());
  }
  bool interrupted() const { return interrupted_; }
  // Ends the call if it is still running. Returns false if gRPC still uses it after kCancelGrace. No other function may
  // be called afterwards.
  bool drain() {
    context_.TryCancel();
    queue.Shutdown();
    return drain_queue(queue);
  }
  // Throws Interrupted if an interrupt has cancelled the call. Use after the call has ended.
  void throw_if_interrupted() const {
    if (interrupted_) throw Interrupted();
  }

  grpc::CompletionQueue queue;

 private:
  // Waits for the next event and records it. Returns false if there is none within `timeout`.
  bool poll(std::chrono::milliseconds timeout) {
    void* t;
    bool ok;
    if (queue.AsyncNext(&t, &ok, deadline_after(timeout)) != grpc::CompletionQueue::GOT_EVENT) return false;
    record_event(t, ok);
    return true;
  }
  void cancel() {
    interrupted_ = true;
    context_.TryCancel();
  }
  void record_event(void* t, bool ok) {
    happened_[reinterpret_cast<intptr_t>(t)] = true;
    ok_[reinterpret_cast<intptr_t>(t)] = ok;
  }

  grpc::ClientContext& context_;
  InterruptTimer timer_;
  bool happened_[kTags] = {};
  bool ok_[kTags] = {};
  bool interrupted_ = false;
};

// Never deletes `state`, which gRPC still uses. Keeps a pointer to it, so that leak checkers do not report it.
inline void abandon(const void* state) {
  static Mutex mutex;
  static auto* const abandoned = new std::vector<const void*>;
  MutexLock lock(mutex);
  abandoned->push_back(state);
}

// Deleter of an asynchronous call's state (a struct with a member `events`). Abandons the state if gRPC still uses it
// when the owner releases it.
struct DrainAndDelete {
  template <typename State>
  void operator()(State* state) const {
    if (state->events.drain()) {
      delete state;
    } else {
      abandon(state);
    }
  }
};
template <typename State>
using CallPointer = std::unique_ptr<State, DrainAndDelete>;

// Makes a call with one request and one reply, which takes at most `timeout`. `prepare(context)` adds metadata;
// `start(context, queue)` calls the stub's Async method. Throws Interrupted.
template <typename Reply, typename Prepare, typename Start>
grpc::Status call_unary(std::chrono::milliseconds timeout, Prepare prepare, Start start, Reply* reply) {
  struct State {
    grpc::ClientContext context;
    CallEvents events{context};
    grpc::Status status;
    Reply reply;
    std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> call;
  };
  CallPointer<State> state(new State);
  state->context.set_deadline(std::chrono::system_clock::now() + timeout);
  prepare(state->context);
  state->call = start(&state->context, &state->events.queue);
  state->call->Finish(&state->reply, &state->status, CallEvents::tag(CallEvents::kFinished));
  const bool finished = state->events.wait_for(CallEvents::kFinished, timeout + kInterruptInterval);
  state->events.throw_if_interrupted();
  if (!finished)
    return grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "the engine did not answer within the deadline");
  reply->Swap(&state->reply);
  return state->status;
}

}  // namespace tt::client
