// Allocator: where a device's bytes come from; Account: who pays for them.
//
// One Allocator a device, owned by Devices, alive as long as the process. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tt {

class Stream;

// One tenant's bytes on all devices. Owned by the session (shared by its storages, which may
// outlive it in another session's hands); thread-safe.
class Account {
 public:
  explicit Account(std::string owner, uint64_t limit = 0) : owner_(std::move(owner)), limit_(limit) {}
  // False, and nothing charged, where it would go over the limit (0: none).
  bool charge(uint64_t bytes);
  void refund(uint64_t bytes) { held_.fetch_sub(bytes, std::memory_order_relaxed); }
  uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  uint64_t limit() const { return limit_; }
  const std::string& owner() const { return owner_; }

 private:
  std::string owner_;
  uint64_t limit_;
  std::atomic<uint64_t> held_{0};
  std::atomic<uint64_t> peak_{0};
};

struct AllocatorStats {
  uint64_t allocated = 0;  // bytes that tensors asked for
  uint64_t active = 0;     // bytes of the blocks they got
  uint64_t reserved = 0;   // bytes taken from the system
  uint64_t peak_allocated = 0;
  uint64_t peak_reserved = 0;
  uint64_t allocations = 0;
  uint64_t retries = 0;  // times cached blocks were given back before an allocation went through
  uint64_t out_of_memory = 0;
  uint64_t system_allocations = 0;  // calls that reached the system (mmap, cudaMalloc)
  uint64_t system_frees = 0;
};

// One block of a snapshot.
struct BlockInfo {
  const void* segment;
  uint64_t offset;
  uint64_t size;
  bool in_use;
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  // 64-byte aligned, not zeroed; null for 0 bytes. Throws Error(kOutOfMemory) that says what was
  // asked and what is held (by whom: Storage adds); what was allocated is as before then. The block is safe to use in
  // `stream`'s order (null: the device's default stream).
  virtual void* allocate(size_t bytes, Stream* stream) = 0;
  // `p` came from allocate(bytes). It may be handed out again at once, in stream order.
  virtual void deallocate(void* p, size_t bytes) = 0;
  // `p`'s block is in use in `stream` too, until what is under way there is done: once freed it is not handed out
  // before that. For memory that one stream allocates and another reads or writes.
  virtual void record_stream(void* p, Stream& stream) = 0;
  virtual AllocatorStats stats() const = 0;
  virtual std::vector<BlockInfo> snapshot() const = 0;
  // Gives unused segments back to the system.
  virtual void empty_cache() = 0;
  // Reserved bytes never exceed it; 0: no limit.
  virtual void set_limit(uint64_t bytes) = 0;
};

}  // namespace tt
