#include "server/session/memory_release.h"

#include <malloc.h>

#include <utility>

#include "engine/device/devices.h"

namespace tt::server {
namespace {

constexpr std::chrono::milliseconds kPause{250};
// Bytes of unused memory that malloc may keep, because trimming takes malloc's locks, and reusing trimmed pages costs
// page faults.
constexpr size_t kUnused = size_t{16} << 20;

}  // namespace

MemoryRelease::~MemoryRelease() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void MemoryRelease::session_ended(Tenant tenant) {
  MutexLock lock(mutex_);
  requested_ = true;
  if (tenant != kNoTenant) ended_.push_back(tenant);
  changed_.notify_all();
}

void MemoryRelease::run() {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return requested_ || stopping_; });
    changed_.wait_for(mutex_, kPause, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
    if (stopping_) return;
    requested_ = false;
    const std::vector<Tenant> ended = std::exchange(ended_, {});
    lock.unlock();
    for (Tenant tenant : ended) {
      Devices::instance().allocator(Device{}).forget(tenant);
      Devices::instance().forget(tenant);
    }
    Devices::instance().forget(kNoTenant);
    if (mallinfo2().fordblks > kUnused) malloc_trim(0);
    lock.lock();
  }
}

}  // namespace tt::server
