// CachingPool: an allocator that caches memory obtained from the system.
//
// The design is PyTorch's: segments are obtained from a SegmentSource, split into blocks, and merged when neighbours
// become free. An allocation uses the best-fitting free block last used in the caller's stream. Small and large blocks
// have separate segments, so that a small block never keeps a large segment. One lock, held for tens of nanoseconds
// except while a segment is obtained from the system. Before an allocation fails, RoomMaker may free the memory of idle
// sessions. Parts: Heap splits segments into blocks, SizeClassCache caches small blocks, DeferredFrees waits for other
// streams, ExpandableSegments grows segments in place, OutOfMemory formats the error.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "engine/device/segment_source.h"
#include "engine/memory/alloc_conf.h"
#include "engine/memory/allocator.h"
#include "engine/memory/asan.h"
#include "engine/memory/deferred_frees.h"
#include "engine/memory/expandable_segments.h"
#include "engine/memory/heap.h"
#include "engine/memory/out_of_memory.h"
#include "engine/memory/size_class_cache.h"
#include "engine/schema/device.h"

namespace tt {

// Sizes in bytes. The defaults are for the CPU. Devices with slower system calls use larger segments.
struct PoolSizes {
  size_t granule = 64;                           // a power of two; block sizes are rounded up to a multiple of it
  size_t red_zone = kRedZone;                    // inaccessible bytes after each block
  size_t page = size_t{4} << 10;                 // segment granule when memory is short
  size_t size_class_limit = size_t{64} << 10;    // larger blocks are merged as soon as they are freed
  size_t size_class_capacity = size_t{8} << 20;  // maximum bytes of unmerged blocks
  size_t small_limit = size_t{1} << 20;          // maximum size of a small block
  size_t small_segment = size_t{2} << 20;
  size_t large_segment = size_t{20} << 20;
  size_t min_own_segment = size_t{10} << 20;  // minimum size of a block that gets its own segment
  size_t segment_granule = size_t{2} << 20;   // size of such a segment: a multiple of this
};

// The interfaces that a backend passes to its pool.
struct PoolParts {
  std::unique_ptr<SegmentSource> segments;
  // Null if streams do not run asynchronously to the host, as on the CPU: record_stream() then waits immediately for
  // another device's stream, and small blocks are cached in size classes.
  std::unique_ptr<StreamEvents> events;
  std::unique_ptr<AddressRangeAllocator> ranges;  // null if expandable segments are not supported
};

class CachingPool final : public Allocator {
 public:
  using Clock = std::chrono::steady_clock;

  CachingPool(Device device, PoolParts parts, PoolSizes sizes, const AllocConf& conf);
  CachingPool(Device device, std::unique_ptr<SegmentSource> segments, PoolSizes sizes = {});
  ~CachingPool() override;  // requires that no allocation is in use

  void* allocate(size_t bytes, const AllocRequest& request = {}) override;
  void deallocate(void* p, size_t bytes, Tenant tenant = kNoTenant) override;
  void record_stream(void* p, Stream& stream) override;
  AllocatorStats stats() const override;
  std::vector<BlockInfo> snapshot() const override;
  void empty_cache(const Stream* stream = nullptr) override;
  void forget(Tenant tenant) override;
  void set_limit(uint64_t bytes) override;
  void release_idle(Clock::time_point now, Clock::duration idle) override;
  void set_owner(void* p, const std::shared_ptr<Account>& owner) override;
  uint64_t make_pool() override;
  void begin_pool(uint64_t pool, Stream& stream) override;
  void end_pool(uint64_t pool, Stream& stream) override;
  void release_pool(uint64_t pool) override;

 private:
  // The requirements for a block.
  struct Request {
    size_t size;
    uintptr_t stream;
    Arena& arena;
    bool small;
  };
  struct Capture {
    uintptr_t stream;
    Arena* arena;
  };

  size_t rounded(size_t bytes) const;
  // Zeroes a block of `size` bytes, `requested` of which the caller may access, for a tenant who must not see its
  // contents.
  void zero(void* p, size_t requested, size_t size, Stream* stream) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a request or block of `size` bytes is small. A small block may be in a large segment (release_and_retry()).
  bool is_small(size_t size) const { return size <= sizes_.small_limit; }
  bool on_cpu() const { return device_.type == DeviceType::kCPU; }  // AddressSanitizer can check the bytes
  void count_allocation(size_t bytes, size_t block_bytes, bool small) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Arena& arena_of(uintptr_t stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool capturing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !captures_.empty(); }
  // caching_pool.cc: allocation from cached blocks.
  Block* best_fit(const Request& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns null if the cache has no suitable block; otherwise a block that is now in use.
  Block* find(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool should_split(const Block& block, const Request& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Block* mark_used(Block* block, const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void release(Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // call when the block is no longer in use
  void collect_deferred() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void flush_size_classes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether other memory may be freed for a request that has failed (room_maker.h).
  bool may_wait_for_room(size_t size) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // caching_pool_growth.cc: allocation of new segments.
  Block* find_or_grow(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // null if out of memory
  Block* release_and_retry(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds a segment. Returns false if the limit is reached or the system has no memory.
  bool grow(const Request& request, size_t segment_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Block* grow_and_find(const Request& request, size_t segment_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t segment_bytes(const Request& request) const;
  void collect_garbage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::pair<char*, size_t> remove_segment(Segment* segment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void release_segment(Segment* segment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool release_oversize(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Releases unused segments of `stream`, or of all streams. Returns false if there were none.
  bool release_unused(std::optional<uintptr_t> stream = {}) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void erase_abandoned_arenas() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t capacity() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // maximum size of the pool; 0: unknown
  OutOfMemory describe_out_of_memory(size_t bytes, const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Device device_;
  const PoolSizes sizes_;
  const AllocConf conf_;
  const bool rounds_;  // whether sizes are rounded up to fractions of powers of two
  const std::unique_ptr<SegmentSource> source_;
  const std::unique_ptr<StreamEvents> events_;

  mutable Mutex mutex_;
  AllocatorStats stats_ ABSL_GUARDED_BY(mutex_);
  SizeClassCache size_classes_ ABSL_GUARDED_BY(mutex_);
  Arena shared_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, std::unique_ptr<Arena>> private_ ABSL_GUARDED_BY(mutex_);
  std::vector<Capture> captures_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_pool_ ABSL_GUARDED_BY(mutex_) = 0;
  Heap heap_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ExpandableSegments> expandable_ ABSL_GUARDED_BY(mutex_);  // null if not supported
  DeferredFrees deferred_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<void*, Block*> used_ ABSL_GUARDED_BY(mutex_);
  uint64_t searches_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t limit_ ABSL_GUARDED_BY(mutex_) = 0;
  // The times of recent calls of release_idle(), and `searches_` at each: a block was free since then if its freed_at
  // is not larger.
  std::deque<std::pair<Clock::time_point, uint64_t>> marks_ ABSL_GUARDED_BY(mutex_);
  std::optional<uint64_t> total_ ABSL_GUARDED_BY(mutex_);  // the system's total memory, once queried
};

}  // namespace tt
