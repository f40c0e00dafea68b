// CachingPool: an allocator that keeps what it took from the system.
//
// The design is PyTorch's: segments are taken from a SegmentSource, split into blocks, and merged
// again as neighbours become free; the best fitting free block is used. Small and large blocks
// have segments of their own, so that a small one never holds a large segment. One lock: held for
// tens of nanoseconds, except where the system is asked for a segment.
#pragma once

#include <memory>
#include <mutex>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "engine/allocator.h"
#include "engine/block.h"
#include "engine/quick_lists.h"
#include "engine/rules/device.h"
#include "engine/segment_source.h"

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

class CachingPool final : public Allocator {
 public:
  CachingPool(Device device, std::unique_ptr<SegmentSource> source, PoolSizes sizes = {});
  ~CachingPool() override;  // nothing that was allocated may be used any more

  // A device has one stream here: what is freed in its order may be handed out in its order.
  void* allocate(size_t bytes, Stream* stream) override;
  void deallocate(void* p, size_t bytes) override;
  void record_stream(void* p, Stream& stream) override;
  AllocatorStats stats() const override;
  std::vector<BlockInfo> snapshot() const override;
  void empty_cache() override;
  void set_limit(uint64_t bytes) override;

 private:
  size_t rounded(size_t bytes) const;
  bool is_small(size_t size) const { return size <= sizes_.small_limit; }
  bool on_cpu() const { return device_.type == DeviceType::kCPU; }  // where sanitizers see the bytes
  FreeBlocks& free_blocks(bool small) { return small ? small_ : large_; }
  // All below: with mutex_ held.
  Block* find_block(size_t size);          // null where the cache has none; the block is in use then
  Block* find_block_or_grow(size_t size);  // null: out of memory
  Block* use(Block* block, size_t size);   // splits off what is too much
  void free(Block* block);                 // merges with its neighbours
  void absorb_right(Block* block);
  bool grow(size_t size, size_t segment_bytes);  // false where the limit or the system says no
  size_t segment_bytes(size_t size) const;
  void unmap(void* segment, size_t bytes);
  void flush_quick();
  bool release_segments();  // false where there was none to release
  void count(size_t bytes, size_t block_bytes);
  [[noreturn]] void out_of_memory(size_t bytes, uint64_t limit, const AllocatorStats& stats) const;

  const Device device_;
  const PoolSizes sizes_;
  const std::unique_ptr<SegmentSource> source_;

  mutable std::mutex mutex_;  // guards all below
  QuickLists quick_;
  FreeBlocks small_;
  FreeBlocks large_;
  absl::flat_hash_map<void*, Block*> used_;
  absl::btree_map<void*, Block*> segments_;  // by address, the first block of each
  uint64_t limit_ = 0;
  AllocatorStats stats_;
};

}  // namespace tt
