// GracePeriod: the time that work has to end at a shutdown.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "base/mutex.h"

namespace tt::server {

// Exits the process after `grace`, even if work (a library call, a device) is still running; the system frees its
// memory. `remove_files` runs before, on a thread of this object. Destroy the object when all work has ended.
class GracePeriod {
 public:
  GracePeriod(std::chrono::milliseconds grace, std::function<void()> remove_files);
  ~GracePeriod();
  GracePeriod(const GracePeriod&) = delete;
  GracePeriod& operator=(const GracePeriod&) = delete;

 private:
  Mutex mutex_;
  CondVar over_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tt::server
