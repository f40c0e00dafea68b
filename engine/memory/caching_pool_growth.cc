// CachingPool: allocation when no cached block fits, trying the cheapest source first.
#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "engine/memory/asan.h"
#include "engine/memory/caching_pool.h"

namespace tt {
namespace {

size_t round_up(size_t bytes, size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

}  // namespace

Block* CachingPool::find_or_grow(const Request& request) {
  ++searches_;
  if (!deferred_.empty() && !capturing()) collect_deferred();
  if (Block* block = find(request)) [[likely]]
    return block;
  // Merging the cached size-class blocks costs less than any system call.
  if (size_classes_.held() > 0) {
    flush_size_classes();
    if (Block* block = find(request)) return block;
  }
  if (conf_.garbage_collection_threshold > 0 && !capturing()) collect_garbage();
  if (Block* block = grow_and_find(request, segment_bytes(request))) return block;
  return release_and_retry(request);
}

Block* CachingPool::release_and_retry(const Request& request) {
  bool released = false;
  Block* block = nullptr;
  if (!capturing()) {
    if (!deferred_.empty()) {
      deferred_.wait([this](Block* waited) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { release(waited); });
      released = true;
      block = find(request);
    }
    if (!block && release_oversize(request)) {
      released = true;
      block = grow_and_find(request, segment_bytes(request));
    }
    if (!block && release_unused()) released = true;
  }
  // Accepts smaller segments than usual, because memory is short.
  if (!block) block = grow_and_find(request, segment_bytes(request));
  if (!block) block = grow_and_find(request, round_up(request.size, sizes_.page));
  if (!block && request.small) {
    Block* large = request.arena.large.best_fit(request.stream, request.size);
    block = large ? mark_used(large, request) : nullptr;
  }
  if (block && released) ++stats_.retries;
  return block;
}

size_t CachingPool::segment_bytes(const Request& request) const {
  if (request.small) return sizes_.small_segment;
  return request.size < sizes_.min_own_segment ? sizes_.large_segment : round_up(request.size, sizes_.segment_granule);
}

bool CachingPool::grow(const Request& request, size_t segment_bytes) {
  if (expandable_) return expandable_->grow(request.arena, request.stream, request.small, request.size, limit_);
  const uint64_t reserved = stats_.all.reserved.now;
  if (limit_ != 0 && (segment_bytes > limit_ || reserved > limit_ - segment_bytes)) return false;
  ++stats_.system_allocations;
  auto* data = static_cast<char*>(source_->map(segment_bytes));
  if (!data) return false;
  if (on_cpu()) forbid_access(data, segment_bytes);
  const bool small = request.small;
  Block* block = heap_.add({data, segment_bytes, request.stream, &request.arena, small, false, nullptr})->first;
  block->freed_at = searches_;
  if (source_->returns_zeroed()) block->tenant = Block::kZeros;
  stats_.add(&PoolStats::reserved, small, segment_bytes);
  return true;
}

Block* CachingPool::grow_and_find(const Request& request, size_t segment_bytes) {
  return grow(request, segment_bytes) ? mark_used(best_fit(request), request) : nullptr;
}

// Removes an unused segment; the caller must unmap its memory.
std::pair<char*, size_t> CachingPool::remove_segment(Segment* segment) {
  char* data = segment->data;
  const size_t bytes = segment->bytes;
  stats_.subtract(&PoolStats::reserved, segment->small, bytes);
  ++stats_.system_frees;
  heap_.remove(segment);
  if (on_cpu()) allow_access(data, bytes);
  return {data, bytes};
}

void CachingPool::release_segment(Segment* segment) {
  const auto [data, bytes] = remove_segment(segment);
  source_->unmap(data, bytes);
}

// Releases the segments that have been unused the longest, until the reserved bytes are below the threshold.
void CachingPool::collect_garbage() {
  const double part = conf_.garbage_collection_threshold * static_cast<double>(capacity());
  const auto threshold = static_cast<uint64_t>(part);
  if (threshold == 0) return;
  while (stats_.all.reserved.now > threshold) {
    uint64_t ages = 0;
    std::vector<Block*> unused;
    for (Block* block : shared_.large) {
      if (!block->is_whole_segment()) continue;
      unused.push_back(block);
      ages += searches_ - block->freed_at;
    }
    if (unused.empty()) return;
    const uint64_t average = ages / unused.size();
    for (Block* block : unused) {
      if (stats_.all.reserved.now <= threshold) return;
      if (searches_ - block->freed_at >= average) release_segment(block->segment);
    }
  }
}

// Releases enough segments that are too large to split: one that is large enough for the request, or several.
bool CachingPool::release_oversize(const Request& request) {
  if (conf_.max_split_size == SIZE_MAX) return false;
  std::vector<Block*> oversize;
  for (Block* block : shared_.large) {
    if (block->is_whole_segment() && block->size >= conf_.max_split_size) oversize.push_back(block);
  }
  std::sort(oversize.begin(), oversize.end(), [](const Block* a, const Block* b) { return a->size < b->size; });
  const size_t needed = segment_bytes(request);
  auto enough = std::find_if(oversize.begin(), oversize.end(), [&](const Block* b) { return b->size >= needed; });
  if (enough != oversize.end()) {
    release_segment((*enough)->segment);
    return true;
  }
  size_t freed = 0;
  for (auto at = oversize.rbegin(); at != oversize.rend() && freed < needed; ++at) {
    freed += (*at)->size;
    release_segment((*at)->segment);
  }
  return freed > 0;
}

bool CachingPool::release_unused(std::optional<uintptr_t> stream) {
  std::vector<Segment*> unused;
  bool any = false;
  const auto is_selected = [&](const Segment* segment) { return !stream || segment->stream == *stream; };
  auto collect = [&](Arena& arena) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const FreeBlocks* blocks : {&arena.small, &arena.large}) {
      for (Block* block : *blocks) {
        if (block->is_whole_segment() && is_selected(block->segment)) unused.push_back(block->segment);
      }
    }
    if (expandable_) any |= expandable_->shrink(arena, is_selected);
  };
  collect(shared_);
  for (auto& [id, arena] : private_) {
    if (arena->is_abandoned()) collect(*arena);
  }
  for (Segment* segment : unused) release_segment(segment);
  erase_abandoned_arenas();
  return any || !unused.empty();
}

void CachingPool::erase_abandoned_arenas() {
  absl::erase_if(private_,
                 [](const auto& entry) { return entry.second->is_abandoned() && entry.second->segments == 0; });
}

void CachingPool::empty_cache(const Stream* stream) {
  MutexLock lock(mutex_);
  if (capturing()) return;
  flush_size_classes();
  collect_deferred();
  release_unused(stream ? std::optional(stream->id()) : std::nullopt);
}

void CachingPool::forget(Tenant tenant) {
  constexpr uint64_t kMinUnused = uint64_t{16} << 20;
  MutexLock lock(mutex_);
  if (capturing() || stats_.all.reserved.now - stats_.all.allocated.now < kMinUnused) return;
  flush_size_classes();
  std::vector<Segment*> unused;
  for (const FreeBlocks* blocks : {&shared_.small, &shared_.large}) {
    for (Block* block : *blocks) {
      // Memory of several tenants must be zeroed before it is reused, so keeping it has no advantage over new memory.
      if (block->is_whole_segment() && (block->tenant == tenant || block->tenant == kNoTenant)) {
        unused.push_back(block->segment);
      }
    }
  }
  for (Segment* segment : unused) release_segment(segment);
}

void CachingPool::release_idle(Clock::time_point now, Clock::duration idle) {
  // Free memory that is kept: less would be obtained again at once.
  constexpr uint64_t kMinUnused = uint64_t{16} << 20;
  // Smaller free blocks keep their pages.
  constexpr size_t kMinDiscarded = size_t{128} << 10;
  MutexLock lock(mutex_);
  if (capturing()) return;
  if (!deferred_.empty()) collect_deferred();
  const bool keeps = stats_.all.reserved.now - stats_.all.allocated.now < kMinUnused;
  // A cached block of a size class prevents the release of its segment.
  if (!keeps && size_classes_.held() > 0) flush_size_classes();
  marks_.emplace_back(now, searches_++);
  while (marks_.size() > 1 && marks_[1].first <= now - idle) marks_.pop_front();
  if (keeps || marks_.front().first > now - idle) return;
  const uint64_t last = marks_.front().second;
  std::vector<Segment*> unused;
  std::vector<Block*> partial;
  for (const FreeBlocks* blocks : {&shared_.small, &shared_.large}) {
    for (Block* block : *blocks) {
      if (block->freed_at > last) continue;
      if (block->is_whole_segment()) {
        unused.push_back(block->segment);
      } else if (on_cpu() && !block->discarded && block->size >= kMinDiscarded) {
        partial.push_back(block);
      }
    }
  }
  std::vector<std::pair<char*, size_t>> released;
  released.reserve(unused.size());
  for (Segment* segment : unused) released.push_back(remove_segment(segment));
  // In use meanwhile, so that no other thread allocates or merges them.
  for (Block* block : partial) heap_.use(block, block->size, /*split=*/false);
  lock.unlock();
  for (const auto& [data, bytes] : released) source_->unmap(data, bytes);
  for (const Block* block : partial) {
    char* const from = block->data + (-reinterpret_cast<uintptr_t>(block->data) & (sizes_.page - 1));
    const size_t bytes = static_cast<size_t>(block->data + block->size - from) & ~(sizes_.page - 1);
    source_->discard(from, bytes);
  }
  lock.lock();
  for (Block* block : partial) {
    const bool merges = (block->left && block->left->is_free()) || (block->right && block->right->is_free());
    if (merges) block->freed_at = searches_;  // a neighbour was freed meanwhile
    heap_.free(block)->discarded = !merges;
  }
}

void CachingPool::set_owner(void* p, const std::shared_ptr<Account>& owner) {
  std::shared_ptr<const Account> before;  // released after the lock
  MutexLock lock(mutex_);
  const auto at = used_.find(p);
  if (at == used_.end() || !at->second->owner) return;
  before = std::exchange(at->second->owner, owner);
}

uint64_t CachingPool::capacity() {
  if (limit_ != 0) return limit_;
  if (!total_) {
    const std::optional<SystemMemoryInfo> info = source_->info();
    total_ = info ? info->total : 0;
  }
  return *total_;
}

OutOfMemory CachingPool::describe_out_of_memory(size_t bytes, const Request& request) {
  OutOfMemory report;
  report.device = device_;
  report.requested = bytes;
  report.limit = limit_;
  report.system = source_->info();
  report.stats = stats_;
  if (!events_) report.stats.all.active = stats_.all.allocated;
  report.capturing = capturing();
  report.expandable = expandable_ != nullptr;
  for (const FreeBlocks* blocks : {&request.arena.small, &request.arena.large}) {
    for (const Block* block : *blocks) report.largest_free = std::max<uint64_t>(report.largest_free, block->size);
  }
  std::map<std::string, uint64_t> holders;
  for (const auto& [data, block] : used_) {
    if (block->owner) holders[block->owner->owner()] += block->requested;
  }
  for (auto& [name, held] : holders) report.holders.push_back({name, held});
  std::stable_sort(report.holders.begin(), report.holders.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return report;
}

uint64_t CachingPool::make_pool() {
  MutexLock lock(mutex_);
  return ++last_pool_;
}

void CachingPool::begin_pool(uint64_t pool, Stream& stream) {
  MutexLock lock(mutex_);
  check(pool != 0 && pool <= last_pool_, "[begin_pool] unknown private pool ", pool);
  for (const Capture& capture : captures_) {
    check(capture.stream != stream.id(), "[begin_pool] the stream already allocates from a private pool");
  }
  std::unique_ptr<Arena>& arena = private_[pool];
  if (!arena) arena = std::make_unique<Arena>();
  arena->id = pool;
  ++arena->users;
  captures_.push_back({stream.id(), arena.get()});
}

void CachingPool::end_pool(uint64_t pool, Stream& stream) {
  MutexLock lock(mutex_);
  const size_t ended =
      std::erase_if(captures_, [&](const Capture& c) { return c.stream == stream.id() && c.arena->id == pool; });
  check(ended == 1, "[end_pool] the stream does not allocate from private pool ", pool);
}

void CachingPool::release_pool(uint64_t pool) {
  MutexLock lock(mutex_);
  auto at = private_.find(pool);
  check(at != private_.end() && at->second->users > 0, "[release_pool] private pool ", pool, " has no users");
  --at->second->users;
  if (!capturing()) erase_abandoned_arenas();
}

}  // namespace tt
