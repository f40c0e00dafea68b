// Cancellation: a request that the work under way stop early.
//
// A session owns one. It is current on the thread that executes the session's frame (CancellationScope) and, within
// parallel_for, on the pool's threads. Any thread may request; the executing thread checks before each kernel and
// between the blocks of long loops, and work that was stopped throws Cancelled, so that its results are not used.
// A check is one relaxed load. A call into a library (oneDNN, OpenBLAS, LAPACK) is not interrupted.
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
  kTimeLimit,  // the frame took longer than the engine allows
  kEnded,      // the session ends; stays requested
};

class Cancellation {
 public:
  using Clock = std::chrono::steady_clock;

  // `time_limit` of one frame, for whoever enforces it, and for messages; 0: none.
  explicit Cancellation(Clock::duration time_limit = {}) : time_limit_(time_limit) {}
  Clock::duration time_limit() const { return time_limit_; }

  bool requested() const { return reason() != CancelReason::kNone; }
  CancelReason reason() const { return reason_.load(std::memory_order_relaxed); }
  // The first reason stands, except that kEnded replaces the others.
  void request(CancelReason reason);
  // Before a frame begins: drops the request for an earlier one, unless the session ends.
  void reset();

  // While the executing thread waits for its client (for an upload), time does not count as the frame's.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Cancellation* const cancellation_;  // null: none is current
  };
  // How long the frame has run since reset(), without pauses. Any thread.
  Clock::duration running() const;

  // The calling thread's; null where the work belongs to no session.
  static Cancellation* current() { return current_; }

 private:
  friend class CancellationScope;
  static inline thread_local constinit Cancellation* current_ = nullptr;

  const Clock::duration time_limit_;
  std::atomic<CancelReason> reason_{CancelReason::kNone};
  std::atomic<Clock::rep> began_{0};   // moves on by what pauses took
  std::atomic<Clock::rep> paused_{0};  // since when; 0: it runs
};

// Makes `cancellation` (may be null) current on this thread, and restores the old one.
class CancellationScope {
 public:
  explicit CancellationScope(Cancellation* cancellation);
  ~CancellationScope();
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

 private:
  Cancellation* const saved_;
};

// Thrown by work that was stopped.
class Cancelled final : public Error {
 public:
  explicit Cancelled(const Cancellation& request);
};

// For loops on this thread that may be left: whether to leave them.
inline bool cancel_requested() {
  const Cancellation* cancellation = Cancellation::current();
  return cancellation != nullptr && cancellation->requested();
}
// Throws Cancelled where it was requested. Not for the bodies of parallel loops.
void check_cancelled();

}  // namespace tt
