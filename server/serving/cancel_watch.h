// CancelWatch: requests the cancellation of work in progress that nobody waits for any more.
//
// One thread examines all registered work every kInterval. It sleeps if there is none, but not at once, so that a
// server under load registers its work without a system call. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "engine/device/cancellation.h"

namespace tt::server {

class CancelWatch {
 public:
  static constexpr std::chrono::milliseconds kInterval{50};
  // Why the work should end; kNone if it should go on. Called by the watching thread with a lock that keeps the work
  // registered: must be quick, and neither begin nor end other work.
  using Reason = std::function<CancelReason()>;

  // Work that is registered while the object exists.
  class Work {
   public:
    Work(CancelWatch& watch, Cancellation& cancellation, Reason reason);
    ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    friend class CancelWatch;
    CancelWatch& watch_;
    Cancellation& cancellation_;
    const Reason reason_;
    size_t position_ ABSL_GUARDED_BY(watch_.mutex_) = 0;  // in works_
  };

  CancelWatch();
  ~CancelWatch();  // no work is registered

 private:
  void run();

  Mutex mutex_;
  CondVar changed_;
  std::vector<Work*> works_ ABSL_GUARDED_BY(mutex_);
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;  // works so far
  bool is_asleep_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tt::server
