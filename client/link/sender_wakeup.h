// SenderWakeup: decides when the sender thread of a Link sleeps, and when a caller wakes it.
//
// A wake-up costs the caller a system call and occupies a core for the sender. A sender without work therefore first
// waits for at most 200 us at a time. A caller that sends its frames itself does not wake the sender from such a timed
// wait; the sender finds other work at its end. Guarded by the Link's mutex.
#pragma once

#include <chrono>
#include <utility>

#include "base/mutex.h"

namespace tt::client {

class SenderWakeup {
 public:
  bool asleep() const { return asleep_; }
  // Whether the sender sleeps for a short time only.
  bool timed_wait() const { return timed_wait_; }
  // Whether callers that waited have recently sent their frames themselves.
  bool callers_send() const { return callers_send_; }
  void set_callers_send(bool value) { callers_send_ = value; }

  // Marks the sender as awake. Returns false if it was awake already. If the result is true, the caller must notify the
  // sender's condition variable, preferably without holding the mutex.
  bool wake() { return std::exchange(asleep_, false); }

  // ---- The sender thread

  void begin_timed_wait() { asleep_ = timed_wait_ = true; }
  void begin_sleep() { timed_wait_ = false; }
  // Sleeps until wake() is called or `duration` has passed. Returns whether wake() was called.
  template <typename Duration>
  bool sleep(CondVar& condition, Mutex& mutex, Duration duration) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return condition.wait_for(mutex, duration, [this] { return !asleep_; });
  }
  void end_sleep() { asleep_ = timed_wait_ = false; }

 private:
  bool asleep_ = false;
  bool timed_wait_ = false;
  bool callers_send_ = false;
};

}  // namespace tt::client
