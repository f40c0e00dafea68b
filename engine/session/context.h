// Context: per-session state that calls use: streams, random numbers, modes, services. One per session; current on the
// thread that executes for the session.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "engine/device/device_queue.h"
#include "engine/device/stream.h"
#include "engine/dispatch/call_scope.h"
#include "engine/session/async_errors.h"
#include "engine/session/events.h"
#include "engine/session/generator.h"
#include "engine/session/graphs.h"
#include "engine/session/profiler.h"
#include "engine/session/service.h"

namespace tt {

// Is called before a kernel writes, for example to copy a value that is still needed (copy on write). Used by the
// thread on which the Context is current.
class WriteObserver {
 public:
  virtual ~WriteObserver() = default;
  virtual void before_write(const Tensor& tensor) = 0;
};

struct Context final : CallScope {
  ~Context() override;

  Generator generator;
  std::function<std::string(uint32_t)> describe_site;  // returns "train.py:12 in step"; may be empty
  SessionServices services;
  int max_threads = 0;      // of an operation on the CPU; 0: no limit
  uint64_t host_bytes = 0;  // bytes of bookkeeping other than handles and services

  // The stream for this context's work on a device: leased by the session at first use, or the device's default stream
  // if there is no session. Throws Error if the device does not exist.
  Stream& stream(Device device) override;
  // Divides the time of GPUs with other contexts from now on. All arguments outlive this context's use. Call before any
  // stream is used; `queues` may be null: then it has no effect.
  void share_gpus(const FairQueues* queues, Share* share, Flow* flow);
  void before_launch(Device device) override;
  // The thread launches nothing for a time: other contexts may have its turns.
  void rest_turns();
  // Gives the turn of a GPU away. Call before a capture.
  void release_turn(Device device);
  // Time for which it has waited for GPUs that other contexts used, since the last call.
  std::chrono::nanoseconds take_waited();
  // Waits until the streams have executed all work so far. Does not throw: errors of the work are reported when a value
  // is read. Does not wait while a graph is captured.
  void finish_device_work();
  // Replay counts summed over all streams.
  ReplayCounts replays() const;
  // Errors that this context's asynchronous device calls may still report.
  AsyncErrorTracker& async_errors();
  Events events;
  bool has_async_errors() const { return async_errors_ && !async_errors_->empty(); }
  Graphs& graphs();
  bool capturing() const { return graphs_ && graphs_->capturing(); }
  // Whether a captured graph exists, or a capture is in progress.
  bool has_graphs() const { return graphs_ && !graphs_->empty(); }
  // Null if no profile is being recorded. A new profile replaces an earlier one.
  Profiler* profiler() const { return profiler_.get(); }
  void start_profiler(Profiler::Options options);
  void stop_profiler() { profiler_ = nullptr; }
  // Reserves the next `count` blocks of random numbers for a device's kernel.
  PhiloxState draw(uint64_t count) {
    if (capturing()) return graphs_->draw(count);
    return {generator.seed, generator.advance(count)};
  }

  // Calls `observer` with each tensor that a kernel is about to write, until it is replaced; null: none. It must not
  // throw, and outlives the context's use of it.
  void set_write_observer(WriteObserver* observer);

  void before_kernel(const Call& call) override;
  void after_kernel(const Call& call) override;
  void before_instruction(SlotTable& slots, const Op& op, uint32_t count, uint32_t site) override;
  void after_instructions(bool suspended) override;
  void on_skipped(const Op& op, Args args, const Error& error, uint32_t site) override;
  uint64_t bookkeeping_bytes() const override;

  // Releases the session's streams, graphs, services, events and account. Requires that only the services still hold
  // tensors of the session.
  void close();

  // The calling thread's context, or a per-thread default if none was set.
  static Context& current();

 protected:
  bool observes_now() const override {
    return capturing() || has_async_errors() || profiler_ != nullptr || write_observer_ != nullptr;
  }

 private:
  friend class ContextScope;

  struct Leased {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<DeviceTurn> turn;  // null: the device's time is not divided
  };
  Leased& leased(Device device);

  absl::InlinedVector<Leased, 1> streams_;  // one per device
  const FairQueues* queues_ = nullptr;
  Share* share_ = nullptr;
  Flow* flow_ = nullptr;
  std::unique_ptr<AsyncErrorTracker> async_errors_;
  std::unique_ptr<Graphs> graphs_;
  std::unique_ptr<Profiler> profiler_;
  WriteObserver* write_observer_ = nullptr;
};

// Makes `context` current on this thread, and restores the previous one on destruction.
class ContextScope {
 public:
  explicit ContextScope(Context* context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  AllocScope* saved_;
  const int saved_thread_limit_;
};

// Sets gradient recording for a block.
class GradMode {
 public:
  explicit GradMode(bool enabled) : saved_(Context::current().grad_enabled) {
    Context::current().grad_enabled = enabled;
  }
  ~GradMode() { Context::current().grad_enabled = saved_; }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool saved_;
};

}  // namespace tt
