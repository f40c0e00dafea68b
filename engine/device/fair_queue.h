// FairQueue: divides the processors' time among principals by weight. That of GPUs is divided by DeviceQueue
// (device_queue.h), which orders its turns with this class.
//
// The thread that executes a session's frame holds a Turn. There are as many turns as cores; if all are taken, threads
// wait, and the next turn goes to the share with the least virtual time: the time that its turns took, divided by its
// weight, but never less than that of the turns in progress, so that idle time earns no credit (start-time fair
// queueing; Goyal, Vin, Cheng, 1996). The flows of a share, its sessions, divide its turns in the same way. Interactive
// shares precede batch shares, except those that have waited for kStarvation. Turns in the background (the warm-up of a
// model) never take the last core, so that other work does not wait until one of their kernels ends.
//
// The holder of a turn offers it to the waiting threads before each kernel and between blocks of long loops
// (Dispatcher, check_cancelled(), parallel_for()), after kQuantum at the earliest, or at once to an interactive share.
// While nobody waits, a turn takes no lock, and reads the clock twice per frame; a check is one load.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/mutex.h"

namespace tt {

// What is divided: the processors, which are resource 0, and the GPUs.
inline constexpr size_t kMaxResources = 17;

// One principal's part of the time. Shared by its sessions; thread-safe. Virtual times are in nanoseconds of a share of
// weight 1.
class Share {
 public:
  enum class Priority : uint8_t { kInteractive, kBatch };
  static constexpr uint32_t kMaxWeight = 1000;

  explicit Share(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  // `weight` is from 1 to kMaxWeight. Holds for turns that begin later.
  void set(uint32_t weight, Priority priority) {
    weight_.store(weight, std::memory_order_relaxed);
    priority_.store(priority, std::memory_order_relaxed);
  }
  uint32_t weight() const { return weight_.load(std::memory_order_relaxed); }
  Priority priority() const { return priority_.load(std::memory_order_relaxed); }
  // Processor time that its turns took.
  std::chrono::nanoseconds used() const {
    return std::chrono::nanoseconds(times_[0].used.load(std::memory_order_relaxed));
  }

 private:
  friend class FairQueue;
  struct Times {
    std::atomic<uint64_t> used{0};
    std::atomic<uint64_t> finish{0};       // virtual time at the end of its last turn
    std::atomic<uint64_t> virtual_now{0};  // of its flows: the latest start of a turn
  };
  const std::string name_;
  std::atomic<uint32_t> weight_{1};
  std::atomic<Priority> priority_{Priority::kInteractive};
  std::array<Times, kMaxResources> times_;  // by resource
};

// One sequence of frames within a share: those of a session, or of a model's instance. Thread-safe. Its virtual times
// are in nanoseconds.
class Flow {
 public:
  Flow() = default;
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

 private:
  friend class FairQueue;
  std::array<std::atomic<uint64_t>, kMaxResources> finish_{};  // virtual time at the end of its last turn, by resource
};

class Turn;

class FairQueue {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kQuantum{1}, kStarvation{100};

  explicit FairQueue(size_t turns, size_t resource = 0)
      : resource_(resource),
        most_in_background_(std::max(static_cast<int64_t>(turns) - 1, int64_t{1})),
        free_(static_cast<int64_t>(turns)) {}
  FairQueue(const FairQueue&) = delete;
  FairQueue& operator=(const FairQueue&) = delete;

  size_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  // How many threads precede the thread of the flow; -1 if it does not wait.
  int position(const Flow& flow) const;

 private:
  friend class DeviceQueue;
  friend class DeviceTurn;
  friend class Turn;
  struct Waiter {
    const Flow* flow;
    const Share* share;
    uint64_t start;  // virtual time of the flow
    Clock::time_point since;
    bool in_background;
    CondVar granted;
    uint64_t turn = 0;  // its number; 0: none
  };

  // Virtual times at which a turn begins.
  struct Start {
    uint64_t share, flow;
  };
  // Call before a turn is taken. `was_idle`: the flow had no work before, and earns no credit for that time.
  Start arrive(Share& share, Flow& flow, bool was_idle = true);
  // Call after it was taken.
  void begin(Share& share, const Start& start);
  // Charges for a part of a turn.
  void charge(Share& share, Flow& flow, uint64_t nanoseconds);
  // The flow's virtual time.
  uint64_t finish(const Flow& flow) const { return flow.finish_[resource_].load(std::memory_order_relaxed); }

  bool try_take(bool in_background = false);
  // Waits for a turn, or until the thread's work is cancelled. Returns the number of the turn, which grows, or 0 if
  // there is none to return. Calls `reclaim`, if not null, at short intervals while no waiting thread precedes this
  // one: it may give() a turn whose holder does not. The turn of a GPU goes to all waiting threads of a share, which
  // return it once.
  uint64_t take(const Share& share, const Flow& flow, uint64_t start,
                const absl::FunctionRef<void()>* reclaim = nullptr, bool in_background = false);
  void give(bool in_background = false);
  // Whether a waiting thread should have the turn instead of its holder, a flow of `share` whose virtual time is
  // `finish`. `lasted`: how long the turn has.
  bool is_due(const Share& share, uint64_t finish, Clock::duration lasted, bool in_background = false) const;
  static Share::Priority rank(const Waiter& w, Clock::time_point now);
  uint64_t start(const Waiter& w) const;  // virtual time of the share
  bool precedes(const Waiter& a, const Waiter& b, Clock::time_point now) const;
  // The thread that gets the next turn; null if none may. `in_background`: that turn is one in the background.
  Waiter* first(Clock::time_point now, bool in_background = false) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void grant() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t resource_;
  const int64_t most_in_background_;
  std::atomic<int64_t> free_;             // turns
  std::atomic<int64_t> background_{0};    // turns in the background
  std::atomic<uint64_t> number_{0};       // of the last turn
  std::atomic<uint64_t> virtual_now_{0};  // the latest start of a turn
  std::atomic<size_t> waiting_{0};
  mutable Mutex mutex_;
  std::vector<Waiter*> waiters_ ABSL_GUARDED_BY(mutex_);
};

// The turn of this thread while the object exists. `queue` may be null: then it has no effect.
class Turn {
 public:
  // Waits for a turn, or until the thread's work is cancelled. `share` and `flow` outlive the queue's threads.
  Turn(FairQueue* queue, Share* share, Flow* flow, bool in_background = false);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // While it exists, the thread waits for something else than the processor and has no turn.
  class Pause {
   public:
    explicit Pause(Turn& turn) : turn_(turn) { turn_.end(); }
    ~Pause() { turn_.begin(); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Turn& turn_;
  };

  // The calling thread's; null if none.
  static Turn* current() { return current_; }
  // Gives the turn to a thread that should have it, if there is one, and waits for another. The caller may hold locks
  // that no other holder of a turn waits for.
  void offer() {
    if (queue_->waiting() != 0) [[unlikely]]
      yield();
  }
  // Whether the thread may use further cores: not all have a turn. Threads of OpenMP that share a core wait for each
  // other in loops, so that kernels take many times as long.
  bool may_widen() const { return queue_->free_.load(std::memory_order_relaxed) > (in_background_ ? 1 : 0); }
  // Charges for further cores that were used.
  void add(std::chrono::nanoseconds time) { extra_ += static_cast<uint64_t>(time.count()); }
  // Time for which it has waited.
  std::chrono::nanoseconds waited() const { return waited_; }

 private:
  void begin();
  void end();
  void yield();
  // Charges the time since the last call.
  void charge(FairQueue::Clock::time_point now);

  static inline thread_local constinit Turn* current_ = nullptr;
  FairQueue* const queue_;
  Share* const share_;
  Flow* const flow_;
  const bool in_background_;
  Turn* const outer_;
  bool has_turn_ = false;
  uint64_t extra_ = 0;  // nanoseconds
  FairQueue::Clock::time_point began_, charged_, next_offer_;
  std::chrono::nanoseconds waited_{0};
};

}  // namespace tt
