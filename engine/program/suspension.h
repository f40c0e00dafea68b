// Suspension: a condition that an instruction waits for before it can run, e.g. the bytes of an upload.
//
// A kernel whose condition is not met throws Suspended before it changes anything. The Executor stops at that
// instruction and returns the Suspension. The caller releases the session's lock, waits, and resumes the Program at the
// same instruction. Meanwhile other calls of the session (a download, a status request, a close) can run.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/mutex.h"

namespace tt {

class Suspension {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~Suspension() = default;
  // Whether to run the instruction now: its condition is met, or can no longer be met, in which case the instruction
  // reports an error. Called without the session's lock.
  virtual bool ready() = 0;
  // The time at which to call ready() again if there was no notification, e.g. the end of a timeout.
  virtual TimePoint deadline() = 0;
};

// Thrown by kernels. Not a std::exception: a waiting instruction has not failed.
struct Suspended {
  std::shared_ptr<Suspension> suspension;
};

// Wakes the thread that waits for a Suspension. Shared by a session and the threads that may notify it, and may outlive
// the session. Thread-safe.
class SuspensionNotifier {
 public:
  // Call after a change that affects ready().
  void notify() {
    {
      MutexLock lock(mutex_);
      ++notifications_;
    }
    notified_.notify_all();
  }
  // The number of notifications so far. Read it before calling ready() and pass it to wait(), so that none is missed.
  uint64_t notifications() const {
    MutexLock lock(mutex_);
    return notifications_;
  }
  // Returns when there are more notifications than `seen`, or at `deadline`.
  void wait(uint64_t seen, Suspension::TimePoint deadline) {
    MutexLock lock(mutex_);
    while (notifications_ == seen && notified_.wait_until(mutex_, deadline) == std::cv_status::no_timeout) {
    }
  }

 private:
  mutable Mutex mutex_;
  CondVar notified_;
  uint64_t notifications_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tt
