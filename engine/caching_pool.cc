#include "engine/caching_pool.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "engine/bytes.h"
#include "engine/poisoning.h"
#include "engine/rules/error.h"
#include "engine/stream.h"

namespace tt {
namespace {

size_t round_up(size_t bytes, size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

}  // namespace

CachingPool::CachingPool(Device device, std::unique_ptr<SegmentSource> source, PoolSizes sizes)
    : device_(device),
      sizes_(sizes),
      source_(std::move(source)),
      quick_(std::min(sizes.quick_limit, sizes.small_limit), sizes.granule, sizes.quick_capacity) {}

CachingPool::~CachingPool() {
  for (auto& [data, first] : segments_) {
    size_t bytes = 0;
    for (Block* block = first; block;) {
      bytes += block->size;
      Block* right = block->right;
      delete block;
      block = right;
    }
    unmap(data, bytes);
  }
}

size_t CachingPool::rounded(size_t bytes) const {
  // An absurd size stays absurd instead of wrapping to a small one.
  constexpr size_t kAbsurd = std::numeric_limits<size_t>::max() / 4;
  return (std::min(bytes, kAbsurd) + sizes_.granule - 1) & ~(sizes_.granule - 1);
}

void* CachingPool::allocate(size_t bytes, Stream*) {
  if (bytes == 0) return nullptr;
  const size_t size = rounded(bytes);
  std::unique_lock lock(mutex_);
  if (void* p = quick_.take(size)) [[likely]] {
    count(bytes, size);
    if (on_cpu()) open_bytes(p, bytes);
    return p;
  }
  if (Block* block = find_block_or_grow(size)) {
    count(bytes, block->size);
    if (on_cpu()) open_bytes(block->data, bytes);
    return block->data;
  }
  ++stats_.out_of_memory;
  uint64_t limit = limit_;
  AllocatorStats stats = stats_;
  lock.unlock();
  out_of_memory(bytes, limit, stats);
}

void CachingPool::count(size_t bytes, size_t block_bytes) {
  ++stats_.allocations;
  stats_.allocated += bytes;
  stats_.active += block_bytes;
  stats_.peak_allocated = std::max(stats_.peak_allocated, stats_.allocated);
}

void CachingPool::deallocate(void* p, size_t bytes) {
  if (!p) return;
  const size_t size = rounded(bytes);
  std::lock_guard lock(mutex_);
  stats_.allocated -= bytes;
  if (on_cpu()) close_bytes(p, bytes);
  if (quick_.give(p, size)) [[likely]] {
    stats_.active -= size;
    return;
  }
  auto at = used_.find(p);
  stats_.active -= at->second->size;
  Block* block = at->second;
  used_.erase(at);
  free(block);
}

Block* CachingPool::find_block(size_t size) {
  Block* block = free_blocks(is_small(size)).best_fit(size);
  return block ? use(block, size) : nullptr;
}

Block* CachingPool::find_block_or_grow(size_t size) {
  if (Block* block = find_block(size)) return block;
  // Merging what waits in the quick lists is cheaper than any call into the system.
  if (quick_.held() > 0) {
    flush_quick();
    if (Block* block = find_block(size)) return block;
  }
  if (grow(size, segment_bytes(size))) return find_block(size);
  // Memory is tight: give back what lies unused, and then be content with less than usual.
  bool released = release_segments();
  Block* block = nullptr;
  if (grow(size, segment_bytes(size)) || grow(size, round_up(size, sizes_.page))) {
    block = find_block(size);
  } else if (is_small(size)) {
    Block* large = large_.best_fit(size);
    block = large ? use(large, size) : nullptr;
  }
  if (block && released) ++stats_.retries;
  return block;
}

Block* CachingPool::use(Block* block, size_t size) {
  free_blocks(block->small).erase(block);
  // A large block keeps a small rest: splitting it off would only make it useless.
  size_t rest = block->size - size;
  if (is_small(size) ? rest >= sizes_.granule : rest > sizes_.small_limit) {
    auto* right = new Block{block->data + size, rest, block, block->right, true, block->small};
    if (block->right) block->right->left = right;
    block->right = right;
    block->size = size;
    free_blocks(right->small).insert(right);
  }
  block->free = false;
  used_.emplace(block->data, block);
  return block;
}

void CachingPool::free(Block* block) {
  if (block->right && block->right->free) {
    free_blocks(block->small).erase(block->right);
    absorb_right(block);
  }
  if (block->left && block->left->free) {
    block = block->left;
    free_blocks(block->small).erase(block);
    absorb_right(block);
  }
  block->free = true;
  free_blocks(block->small).insert(block);
}

void CachingPool::absorb_right(Block* block) {
  Block* right = block->right;
  block->size += right->size;
  block->right = right->right;
  if (right->right) right->right->left = block;
  delete right;
}

size_t CachingPool::segment_bytes(size_t size) const {
  if (is_small(size)) return sizes_.small_segment;
  return size < sizes_.own_segment ? sizes_.large_segment : round_up(size, sizes_.segment_granule);
}

bool CachingPool::grow(size_t size, size_t segment_bytes) {
  if (limit_ != 0 && (segment_bytes > limit_ || stats_.reserved > limit_ - segment_bytes)) return false;
  ++stats_.system_allocations;
  auto* data = static_cast<char*>(source_->map(segment_bytes));
  if (!data) return false;
  if (on_cpu()) close_bytes(data, segment_bytes);
  auto* block = new Block{data, segment_bytes, nullptr, nullptr, true, is_small(size)};
  segments_.emplace(data, block);
  free_blocks(block->small).insert(block);
  stats_.reserved += segment_bytes;
  stats_.peak_reserved = std::max(stats_.peak_reserved, stats_.reserved);
  return true;
}

void CachingPool::unmap(void* segment, size_t bytes) {
  if (on_cpu()) open_bytes(segment, bytes);
  source_->unmap(segment, bytes);
}

void CachingPool::flush_quick() {
  quick_.for_each([&](void* p) {
    auto at = used_.find(p);
    Block* block = at->second;
    used_.erase(at);
    free(block);
  });
  quick_.clear();
}

bool CachingPool::release_segments() {
  std::vector<Block*> unused;
  for (FreeBlocks* blocks : {&small_, &large_}) {
    for (Block* block : *blocks) {
      if (block->is_whole_segment()) unused.push_back(block);
    }
  }
  for (Block* block : unused) {
    free_blocks(block->small).erase(block);
    segments_.erase(block->data);
    stats_.reserved -= block->size;
    ++stats_.system_frees;
    unmap(block->data, block->size);
    delete block;
  }
  return !unused.empty();
}

void CachingPool::record_stream(void*, Stream& stream) { stream.synchronize(); }

AllocatorStats CachingPool::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

std::vector<BlockInfo> CachingPool::snapshot() const {
  std::lock_guard lock(mutex_);
  absl::flat_hash_set<const void*> waiting;
  quick_.for_each([&](void* p) { waiting.insert(p); });
  std::vector<BlockInfo> infos;
  for (auto& [data, first] : segments_) {
    for (const Block* block = first; block; block = block->right) {
      auto offset = static_cast<uint64_t>(block->data - static_cast<const char*>(data));
      infos.push_back({data, offset, block->size, !block->free && !waiting.contains(block->data)});
    }
  }
  return infos;
}

void CachingPool::empty_cache() {
  std::lock_guard lock(mutex_);
  flush_quick();
  release_segments();
}

void CachingPool::set_limit(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  limit_ = bytes;
}

void CachingPool::out_of_memory(size_t bytes, uint64_t limit, const AllocatorStats& stats) const {
  std::string bound = limit ? absl::StrCat("the limit is ", bytes_text(limit)) : "the system has no more";
  Error error(ErrorKind::kOutOfMemory,
              absl::StrCat("out of memory on ", to_string(device_), ": asked ", bytes_text(bytes), ", ", bound, ", ",
                           bytes_text(stats.allocated), " are allocated, ", bytes_text(stats.reserved), " reserved"));
  error.set_op("allocate");
  throw error;
}

}  // namespace tt
