// DeviceQueue: divides a GPU's time among principals by weight, in the order of FairQueue. DeviceTurn: a session's part
// in its principal's turn.
//
// All sessions of a share have its turn together, so that their kernels may overlap, as those of several instances of a
// model do. A GPU executes kernels after their launch, so a turn lasts until the GPU has executed what was launched in
// it. While nobody waits it is kept, and a launch costs three loads and a store.
//
// While others wait, a session has at most two bursts of launches in its stream. The number of launches in a burst is
// adapted so that it takes about half of FairQueue::kQuantum. The first of the waiting threads ends the turn, and waits
// for its streams: after kQuantum if its own share is due, or when the sessions launch nothing, because their frames
// have ended or do something else, and their streams have executed everything. The share is charged for the time in
// which others waited.
//
// A turn ends even if its work does not, after kLongestWait, or a second if that work is behind other late work: it may
// wait for the work of another session that has no turn, such as in a collective. Then the GPU executes work of both,
// and until the late work is done, the time is charged to its share.
//
// Not divided are copies between host and device, work of NCCL, and a graph or kernel that has been launched.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "engine/device/fair_queue.h"
#include "engine/device/stream.h"

namespace tt {

class DeviceTurn;

// Thread-safe. Outlives its turns.
class DeviceQueue {
 public:
  static constexpr std::chrono::milliseconds kLongestWait{100};

  // `resource`: 1 to kMaxResources - 1; another one than that of any other queue of the same shares.
  explicit DeviceQueue(size_t resource) : queue_(1, resource) {}
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  size_t waiting() const { return queue_.waiting(); }
  // How many threads precede the thread of the flow; -1 if it does not wait.
  int position(const Flow& flow) const { return queue_.position(flow); }

 private:
  friend class DeviceTurn;
  using Clock = FairQueue::Clock;

  // Waits for a turn of the thread's share, or until its work is cancelled.
  void take(DeviceTurn& turn);
  // Joins the running turn if it is one of the same share, or, with a number from FairQueue::take(), begins or joins
  // that turn unless it has ended.
  bool join(DeviceTurn& turn, uint64_t number);
  void leave(DeviceTurn& turn);
  // Ends the turn, for the first of the waiting threads, if that is due or its work is done.
  void end_turn();
  void clear() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for the work of the turn that has ended.
  void drain();
  // Charges the owner of late work, or else `turn`, which may be null, for the time since the last charge in which
  // others waited. Returns whether no work is late.
  bool charge(DeviceTurn* turn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  FairQueue queue_;                                         // of one turn
  std::atomic<Clock::time_point> contended_since_{};        // when the first of the waiting threads began to wait
  Mutex mutex_;                                             // acquired before that of queue_
  std::vector<DeviceTurn*> turns_ ABSL_GUARDED_BY(mutex_);  // those that have the turn, all of one share
  uint64_t number_ ABSL_GUARDED_BY(mutex_) = 0;             // of the turn
  uint64_t ended_ ABSL_GUARDED_BY(mutex_) = 0;              // the number of the last turn that has ended
  Clock::time_point began_ ABSL_GUARDED_BY(mutex_), charged_until_ ABSL_GUARDED_BY(mutex_);
  // The ends of work of turns that have ended; the first one is charged.
  std::vector<std::pair<DeviceTurn*, std::unique_ptr<Event>>> late_ ABSL_GUARDED_BY(mutex_);
};

// The queues of an engine that several principals share.
struct FairQueues {
  // With a queue for each GPU; the time of GPUs after the first kMaxResources - 1 is not divided.
  explicit FairQueues(size_t cores, size_t count = 0);
  // Null if the device is no GPU, or its time is not divided.
  DeviceQueue* of(Device device) const;
  // Threads that precede the flow's thread where it waits; -1 if it does not wait.
  int position(const Flow& flow) const;

  FairQueue processors;
  std::vector<std::unique_ptr<DeviceQueue>> gpus;  // by index
};

// The part of one session, or of a model's instance, in turns on one GPU. Used by one thread at a time; other threads
// may end the turn. All arguments outlive it.
class DeviceTurn {
 public:
  DeviceTurn(DeviceQueue& queue, Share& share, Flow& flow, Stream& stream)
      : queue_(queue), share_(share), flow_(flow), stream_(stream) {}
  ~DeviceTurn() { queue_.leave(*this); }
  DeviceTurn(const DeviceTurn&) = delete;
  DeviceTurn& operator=(const DeviceTurn&) = delete;

  // Call before each kernel that is launched in the stream. Waits for a turn, or until the thread's work is cancelled.
  // The thread has no Turn of the processors meanwhile. The caller may hold locks that no other caller waits for.
  void before_launch() {
    launches_.store(launches_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (has_turn_.load(std::memory_order_relaxed) && queue_.waiting() == 0) [[likely]]
      return;
    take_or_pace();
  }
  // Call when the thread stops launching for a time. The turn may then end at once.
  void rest() { rested_at_.store(launches_.load(std::memory_order_relaxed), std::memory_order_relaxed); }
  // Waits for what was launched, for kLongestWait at most, and has no part in the turn any longer. Call before the
  // stream begins a capture, in which other threads must not use it.
  void leave();
  // Time for which it has waited for other sessions since the last call.
  std::chrono::nanoseconds take_waited() { return std::exchange(waited_, {}); }

 private:
  friend class DeviceQueue;
  using Clock = FairQueue::Clock;

  void take_or_pace();
  void begin_bursts(std::unique_ptr<Event> previous);
  // Returns once the previous burst has been executed.
  void end_burst();
  bool is_resting() const {
    return rested_at_.load(std::memory_order_relaxed) == launches_.load(std::memory_order_relaxed);
  }
  // Returns for how long it has launched nothing. Sets whether the stream has executed everything and no launch is
  // expected.
  Clock::duration idle_time(Clock::time_point now, bool* is_over);
  // Records an event after the launched work. Returns null if the device is lost.
  std::unique_ptr<Event> record();

  DeviceQueue& queue_;
  Share& share_;
  Flow& flow_;
  Stream& stream_;
  // Written by the session's thread, except that others clear has_turn_. A launch that passes before_launch() while the
  // turn ends does no harm but to share the GPU for its time, so that the order of these accesses does not matter.
  std::atomic<uint64_t> launches_{1};
  std::atomic<uint64_t> rested_at_{0};  // launches_ at rest()
  std::atomic<bool> has_turn_{false};
  std::atomic<bool> is_paced_{false};  // whether it has ended a burst in this turn
  std::atomic<bool> waits_{false};     // for a burst
  // Used under the queue's lock: what idle_time() has seen, and when a turn ended within a frame.
  uint64_t seen_launches_ = 0;
  Clock::time_point seen_since_, interrupted_at_;
  std::unique_ptr<Event> seen_end_;
  // Used by the session's thread.
  uint32_t burst_ = 1, launched_ = 0;  // launches in a burst; launches of this burst
  Clock::time_point burst_began_;
  Clock::time_point contended_since_;  // the queue's, when the first burst began
  std::unique_ptr<Event> previous_;    // the end of the previous burst
  bool is_long_ = false;               // a kernel takes longer than the quantum: there is one in the stream
  std::chrono::nanoseconds waited_{0};
};

}  // namespace tt
