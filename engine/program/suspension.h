// Suspension: what an instruction waits for before it can run: an upload's bytes, say.
//
// A kernel that finds its condition unmet throws Suspended, before it has changed anything. The Executor stops at that
// instruction and returns the Suspension; its caller lets go of the session's lock, waits, and runs the Program on from
// the same instruction. Meanwhile other calls of the session (a download, a status request, a close) proceed.
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
  // Whether the instruction should run now: its condition is met, or will never be, which it reports itself. Called
  // without the session's lock.
  virtual bool ready() = 0;
  // When ready() changes without a notification, at the latest.
  virtual TimePoint deadline() = 0;
};

// Thrown by kernels. Not a std::exception: an instruction that waits has not failed.
struct Suspended {
  std::shared_ptr<Suspension> suspension;
};

// Wakes the thread that waits for a Suspension. Shared by a session and by those who may end its waiting, which may
// outlive it. Thread-safe.
class WakeUp {
 public:
  // Call after a change that ready() depends on.
  void notify() {
    {
      MutexLock lock(mutex_);
      ++notifications_;
    }
    notified_.notify_all();
  }
  // How many notifications there were. Ask before ready(), and pass to wait(), so that none is missed between.
  uint64_t notifications() const {
    MutexLock lock(mutex_);
    return notifications_;
  }
  // Returns once there are more notifications than `seen`, or at `deadline`.
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
