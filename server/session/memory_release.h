// MemoryRelease: returns the memory of ended sessions to the system: tensor memory from the CPU's pool, what the kernels'
// caches keep, other memory from malloc's arenas.
//
// Runs on a separate thread, a moment after a session has ended, so that the buffers of its stream have been freed too,
// and at most a few times per second. Does not trim malloc's arenas if little of their memory is unused. Thread-safe.
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

  // Call when a session has ended. `tenant` is the session's tenant if the tenant has no other session, else kNoTenant.
  void session_ended(Tenant tenant);

 private:
  void run();

  Mutex mutex_;
  CondVar changed_;
  std::vector<Tenant> ended_ ABSL_GUARDED_BY(mutex_);  // tenants that ended since the last release
  bool requested_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tt::server
