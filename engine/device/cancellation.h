// Cancellation: a request to stop the current work early.
//
// Owned by a session. It is current on the thread that executes the session's frame (CancellationScope) and, within
// parallel_for, on the pool's threads. Any thread may call request(); the executing thread checks before each kernel
// and between the blocks of long loops. Stopped work throws Cancelled, so that its results are not used. A check is one
// relaxed load. A library call (oneDNN, OpenBLAS, LAPACK) is not interrupted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "engine/schema/error.h"

namespace tt {

enum class CancelReason : uint8_t {
  kNone,
  kClient,     // the client cancelled the frame
  kTimeLimit,  // the frame exceeded the engine's time limit
  kEnded,      // the session ends; never cleared
};

class Cancellation {
 public:
  using Clock = std::chrono::steady_clock;

  // `time_limit` is the maximum duration of a frame, or 0 for no limit. The caller enforces it; this class only stores
  // it for messages.
  explicit Cancellation(Clock::duration time_limit = {}) : time_limit_(time_limit) {}
  Clock::duration time_limit() const { return time_limit_; }

  bool requested() const { return reason() != CancelReason::kNone; }
  CancelReason reason() const { return reason_.load(std::memory_order_relaxed); }
  // The first reason is kept, except that kEnded replaces any other.
  void request(CancelReason reason);
  // Call before a frame begins: clears the previous frame's request, unless the session ends.
  void reset();

  // Excludes the time in which the executing thread waits for its client (for an upload) from the frame's duration.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Cancellation* cancellation_;  // null if none is current, or if an outer Pause exists
  };
  // The frame's duration since reset(), without pauses. Any thread.
  Clock::duration running() const;

  // Returns the calling thread's current Cancellation; null if the work belongs to no session.
  static Cancellation* current() { return current_; }

 private:
  friend class CancellationScope;
  static inline thread_local constinit Cancellation* current_ = nullptr;

  const Clock::duration time_limit_;
  std::atomic<CancelReason> reason_{CancelReason::kNone};
  std::atomic<Clock::rep> began_{0};   // when the frame began, advanced by the duration of its pauses
  std::atomic<Clock::rep> paused_{0};  // start of the current pause; 0: not paused
};

// Makes `cancellation` (may be null) current on this thread, and restores the previous one on destruction.
class CancellationScope {
 public:
  explicit CancellationScope(Cancellation* cancellation);
  ~CancellationScope();
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

 private:
  Cancellation* const saved_;
};

// Thrown by stopped work.
class Cancelled final : public Error {
 public:
  explicit Cancelled(const Cancellation& request);
};

// Whether a loop on this thread should stop early.
inline bool cancel_requested() {
  const Cancellation* cancellation = Cancellation::current();
  return cancellation != nullptr && cancellation->requested();
}
// Throws Cancelled if cancellation was requested. Bodies of parallel loops must not call it.
void check_cancelled();

}  // namespace tt
