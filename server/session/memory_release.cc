#include "server/session/memory_release.h"

#include <malloc.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/device/devices.h"
#include "engine/memory/host_memory.h"

namespace tt::server {
namespace {

using Clock = std::chrono::steady_clock;

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
  tenant == kNoTenant ? void(shared_ = true) : ended_.push_back(tenant);
  changed_.notify_all();
}

void MemoryRelease::run() {
  Clock::time_point next = Clock::now() + kInterval;
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait_for(mutex_, next - Clock::now(),
                      [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return requested_ || stopping_; });
    if (requested_) {
      changed_.wait_for(mutex_, kPause, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; });
    }
    if (stopping_) return;
    const bool requested = std::exchange(requested_, false);
    const bool shared = std::exchange(shared_, false);
    const std::vector<Tenant> ended = std::exchange(ended_, {});
    MutexUnlock unlocked(mutex_);
    for (Tenant tenant : ended) {
      Devices::instance().allocator(Device{}).forget(tenant);
      Devices::instance().forget(tenant);
    }
    if (requested) {
      if (shared) Devices::instance().forget(kNoTenant);
      trim_malloc(/*at_once=*/true);
    }
    if (Clock::now() < next) continue;
    release_idle();
    trim_malloc(/*at_once=*/false);
    next = Clock::now() + kInterval;
  }
}

void MemoryRelease::release_idle() {
  const std::optional<HostMemory> host = read_host_memory();
  const bool is_short = host && host->available < 2 * kept_free_memory(host->total);
  Devices& devices = Devices::instance();
  const Clock::time_point now = Clock::now();
  std::vector<Allocator*> pools;
  for (const DeviceInfo& info : devices.list()) {
    Allocator* const pool = &devices.backend(info.device).staging();  // host memory; of the CPU, its only pool
    if (std::find(pools.begin(), pools.end(), pool) == pools.end()) pools.push_back(pool);
  }
  for (Allocator* pool : pools) pool->release_idle(now, is_short ? Clock::duration::zero() : Clock::duration(kIdle));
}

void MemoryRelease::trim_malloc(bool at_once) {
  const size_t unused = mallinfo2().fordblks;
  trimmed_ = std::min(trimmed_, unused);
  if (!at_once) {
    unused_.push_back(unused);
    if (unused_.size() < static_cast<size_t>(kIdle / kInterval)) return;
  }
  size_t idle = unused;  // mallinfo2() also counts memory that was trimmed
  if (!at_once) {
    idle = *std::min_element(unused_.begin(), unused_.end());
    unused_.pop_front();
  }
  if (idle <= kUnused || (!at_once && idle < trimmed_ + kUnused)) return;
  malloc_trim(0);
  trimmed_ = mallinfo2().fordblks;
}

}  // namespace tt::server
