// CachingPool: an allocator that keeps what it took from the system.
//
// The design is PyTorch's: segments are taken from a SegmentSource, split into blocks, and merged again as neighbours
// become free; of the free blocks that were last used in the caller's stream the best fitting one is taken. Small and
// large blocks have segments of their own, so that a small one never holds a large segment. One lock: held for tens of
// nanoseconds, except where the system is asked for a segment. What the parts do is said where they are: Heap cuts
// segments into blocks, SizeClassCache keeps small ones at hand, DeferredFrees waits for other streams,
// ExpandableSegments grows in place, OutOfMemory explains.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "engine/device/segment_source.h"
#include "engine/memory/alloc_conf.h"
#include "engine/memory/allocator.h"
#include "engine/memory/deferred_frees.h"
#include "engine/memory/expandable_segments.h"
#include "engine/memory/heap.h"
#include "engine/memory/out_of_memory.h"
#include "engine/memory/size_class_cache.h"
#include "engine/schema/device.h"

namespace tt {

// All in bytes; those of the CPU. A device with costlier requests asks for larger pieces.
struct PoolSizes {
  size_t granule = 64;                      // a power of two: sizes are rounded up to a multiple
  size_t page = size_t{4} << 10;            // a segment's, where memory is tight
  size_t quick_limit = size_t{64} << 10;    // larger blocks are merged as soon as they are freed
  size_t quick_capacity = size_t{8} << 20;  // what may wait unmerged
  size_t small_limit = size_t{1} << 20;     // up to this a block is small
  size_t small_segment = size_t{2} << 20;
  size_t large_segment = size_t{20} << 20;
  size_t own_segment = size_t{10} << 20;     // from this on a block gets a segment of its own,
  size_t segment_granule = size_t{2} << 20;  // rounded up to a multiple of this
};

// What a backend gives its pool to work with.
struct PoolParts {
  std::unique_ptr<SegmentSource> segments;
  // Null where streams never run beside the host, as the CPU's: then another device's stream is waited for as soon as
  // it is recorded, and small blocks wait in quick lists.
  std::unique_ptr<StreamEvents> events;
  std::unique_ptr<RangeSource> ranges;  // null: no expandable segments
};

class CachingPool final : public Allocator {
 public:
  CachingPool(Device device, PoolParts parts, PoolSizes sizes, const AllocConf& conf);
  CachingPool(Device device, std::unique_ptr<SegmentSource> segments, PoolSizes sizes = {});
  ~CachingPool() override;  // nothing that was allocated may be used any more

  void* allocate(size_t bytes, const AllocRequest& request = {}) override;
  void deallocate(void* p, size_t bytes, Tenant tenant = kNobody) override;
  void record_stream(void* p, Stream& stream) override;
  AllocatorStats stats() const override;
  std::vector<BlockInfo> snapshot() const override;
  void empty_cache(const Stream* stream = nullptr) override;
  void forget(Tenant tenant) override;
  void set_limit(uint64_t bytes) override;
  uint64_t make_pool() override;
  void begin_pool(uint64_t pool, Stream& stream) override;
  void end_pool(uint64_t pool, Stream& stream) override;
  void release_pool(uint64_t pool) override;

 private:
  // A block that is looked for.
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
  // Gives a block of `size` bytes, `requested` of which were asked for, to a tenant who must not see what is in it.
  // Without the lock.
  void zero(void* p, size_t requested, size_t size, Stream* stream);
  bool is_small(size_t size) const { return size <= sizes_.small_limit; }
  bool on_cpu() const { return device_.type == DeviceType::kCPU; }  // where sanitizers see the bytes
  // All below: with mutex_ held.
  void count(size_t bytes, size_t block_bytes, bool small);
  Arena& arena_of(uintptr_t stream);
  bool capturing() const { return !captures_.empty(); }
  // caching_pool.cc: what is there.
  Block* best_fit(const Request& request) const;
  Block* find(const Request& request);  // null where the cache has none; the block is in use then
  bool splits(const Block& block, const Request& request) const;
  Block* take(Block* block, const Request& request);
  void release(Block* block);  // nobody uses it any more
  void settle_deferred();
  void flush_quick();
  // shortage.cc: what has to be made.
  Block* find_or_grow(const Request& request);  // null: out of memory
  Block* retry(const Request& request);
  bool grow(const Request& request, size_t segment_bytes);  // false where the limit or the system says no
  Block* find_grown(const Request& request, size_t segment_bytes);
  size_t segment_bytes(const Request& request) const;
  void collect_garbage();
  void give_back(Segment* segment);
  bool give_back_oversize(const Request& request);
  bool give_back_unused(std::optional<uintptr_t> stream = {});  // of that one, or all; false where there was none
  void forget_abandoned();
  uint64_t capacity();  // what the pool could get altogether; 0: unknown
  OutOfMemory describe_shortage(size_t bytes, const Request& request);

  const Device device_;
  const PoolSizes sizes_;
  const AllocConf conf_;
  const bool rounds_;  // to parts of powers of two
  const std::unique_ptr<SegmentSource> source_;
  const std::unique_ptr<StreamEvents> events_;

  mutable std::mutex mutex_;  // guards all below
  AllocatorStats stats_;
  SizeClassCache quick_;
  Arena shared_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Arena>> private_;
  std::vector<Capture> captures_;
  uint64_t last_pool_ = 0;
  Heap heap_;
  std::unique_ptr<ExpandableSegments> expandable_;  // null where there are none
  DeferredFrees deferred_;
  absl::flat_hash_map<void*, Block*> used_;
  uint64_t searches_ = 0;
  uint64_t limit_ = 0;
  std::optional<uint64_t> total_;  // of the system, once asked
};

}  // namespace tt
