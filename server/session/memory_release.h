// MemoryRelease: returns unused memory to the system: tensor memory from the pools of host memory, what the kernels'
// caches keep for sessions that have ended, other memory from malloc's arenas.
//
// Runs on a separate thread: every kInterval for what has been unused for kIdle, and for all free memory if the host
// has little left; and a moment after a session has ended, so that the buffers of its stream have been freed too. Does
// not trim malloc's arenas if little of their memory is unused. A loop that allocates the same memory again within
// kIdle is not affected. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "engine/memory/allocator.h"

namespace tt::server {

class MemoryRelease {
 public:
  static constexpr std::chrono::seconds kIdle{10};
  static constexpr std::chrono::milliseconds kInterval{2500};

  MemoryRelease() : thread_([this] { run(); }) {}
  ~MemoryRelease();
  MemoryRelease(const MemoryRelease&) = delete;
  MemoryRelease& operator=(const MemoryRelease&) = delete;

  // Call when a session has ended. `tenant` is the session's tenant if the tenant has no other session, else kNoTenant.
  void session_ended(Tenant tenant);

 private:
  void run();
  void release_idle();
  void trim_malloc(bool at_once);

  Mutex mutex_;
  CondVar changed_;
  std::vector<Tenant> ended_ ABSL_GUARDED_BY(mutex_);  // tenants that ended since the last release
  bool requested_ ABSL_GUARDED_BY(mutex_) = false;
  bool shared_ ABSL_GUARDED_BY(mutex_) = false;  // a session ended whose tenant has others
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // malloc's unused bytes at the last kIdle / kInterval intervals, and after the last trim. Used by thread_ only.
  std::deque<size_t> unused_;
  size_t trimmed_ = 0;
  std::thread thread_;
};

}  // namespace tt::server
