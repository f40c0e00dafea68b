// MemoryHistory: the allocations and releases of an account's tensors, while they are recorded.
//
// Owned by an Account, whose bookkeeping includes its bytes. Thread-safe: tensors are freed on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "engine/schema/device.h"

namespace tt {

class Account;

class MemoryHistory {
 public:
  enum Kind : uint16_t { kAllocation = 0, kFree = 1, kOutOfMemory = 2 };
  struct Event {
    uint64_t time = 0;  // microseconds since 1970
    const void* address = nullptr;
    uint64_t bytes = 0;  // requested
    uint32_t site = 0;   // the client's number for the source line; 0: unknown
    uint16_t kind = kAllocation;
    uint16_t device = 0;  // 0: the CPU; 1 + the index of a GPU
  };
  // An allocation that was recorded and not freed yet.
  struct Live {
    uint64_t bytes = 0;
    uint32_t site = 0;
  };

  explicit MemoryHistory(Account& account) : account_(account) {}
  ~MemoryHistory();

  // Records the next events; the last `max_events` are kept. Earlier events are kept if their maximum is the same.
  // Throws Error(kOutOfMemory) if the account has no room for them.
  void start(size_t max_events);
  // Keeps the events, and records no more.
  void stop();
  bool is_active() const;
  void clear();

  void allocated(const void* p, uint64_t bytes, Device device, uint32_t site);
  void freed(const void* p, uint64_t bytes, Device device);
  void out_of_memory(uint64_t bytes, Device device, uint32_t site);

  std::vector<Event> events() const;  // oldest first
  uint64_t dropped() const;           // events that were not kept
  std::optional<Live> find(const void* p) const;

  static uint64_t now();

 private:
  void add(const Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void charge() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Account& account_;
  mutable Mutex mutex_;
  bool active_ ABSL_GUARDED_BY(mutex_) = false;
  size_t max_events_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Event> events_ ABSL_GUARDED_BY(mutex_);  // a ring once it has max_events_
  uint64_t count_ ABSL_GUARDED_BY(mutex_) = 0;         // of all events since clear()
  absl::flat_hash_map<const void*, Live> live_ ABSL_GUARDED_BY(mutex_);
  uint64_t charged_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tt
