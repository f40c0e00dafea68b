// MemoryRelease: gives memory of ended sessions back to the system: their tensors' from the CPU's pool, the rest from
// malloc's arenas.
//
// On a thread of its own, a moment after a session has ended, when its stream's buffers are free too, and not more than
// a few times per second. Where little is unused it does nothing. Thread-safe.
#pragma once

#include <chrono>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "engine/memory/allocator.h"

namespace tt::server {

class MemoryRelease {
 public:
  MemoryRelease() : thread_([this] { run(); }) {}
  ~MemoryRelease();
  MemoryRelease(const MemoryRelease&) = delete;
  MemoryRelease& operator=(const MemoryRelease&) = delete;

  // The last session of `tenant` has ended. kNobody: it has others.
  void session_ended(Tenant tenant);

 private:
  void run();

  Mutex mutex_;
  CondVar changed_;
  std::vector<Tenant> ended_ ABSL_GUARDED_BY(mutex_);  // since the last time
  bool asked_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tt::server
