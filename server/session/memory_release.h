// MemoryRelease: returns memory of ended sessions to the system: tensors' from the CPU's pool, the rest from malloc's
// arenas.
//
// Runs on its own thread, shortly after a session has ended, when its stream's buffers have been freed too, and at most
// a few times per second. Does nothing if little memory is unused. Thread-safe.
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

  // Call when a session has ended. `tenant`: its tenant if that has no other session, else kNoTenant.
  void session_ended(Tenant tenant);

 private:
  void run();

  Mutex mutex_;
  CondVar changed_;
  std::vector<Tenant> ended_ ABSL_GUARDED_BY(mutex_);  // since the last release
  bool requested_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tt::server
