// CallLog: when a session's instructions were issued, in their order. For a profiler; does nothing until start().
//
// Owned by the Session. Thread-safe. Its lock is acquired while an instruction is being added to a frame.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/mutex.h"

namespace tt::client {

struct IssuedCall {
  uint64_t start = 0;     // nanoseconds of CLOCK_MONOTONIC: when the caller called the session
  uint64_t duration = 0;  // until the instruction was added to a frame
  uint64_t thread = 0;    // the operating system's number
  uint32_t site = 0;
  uint16_t op = 0;
};

class CallLog {
 public:
  // Logs the next `max_calls` calls, instead of those of an earlier start().
  void start(size_t max_calls);
  // Returns the calls since start(), and logs no more.
  std::vector<IssuedCall> stop();
  bool active() const { return active_.load(std::memory_order_relaxed); }
  // The calling thread begins a call, which will add an instruction.
  void begin();
  // Call while the instruction is being added.
  void add(uint16_t op, uint32_t site);
  // The clock and the threads' numbers of the log.
  static uint64_t now();
  static uint64_t thread_number();

 private:
  std::atomic<bool> active_{false};
  Mutex mutex_;
  std::vector<IssuedCall> calls_ ABSL_GUARDED_BY(mutex_);
  size_t max_calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tt::client
