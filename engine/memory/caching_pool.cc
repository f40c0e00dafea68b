#include "engine/memory/caching_pool.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "engine/device/stream.h"
#include "engine/memory/room_maker.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

PoolParts only(std::unique_ptr<SegmentSource> segments) {
  PoolParts parts;
  parts.segments = std::move(segments);
  return parts;
}

// Whether `tenant` may get a block that contains bytes of `before` without zeroing.
bool may_reuse(Tenant tenant, Tenant before) {
  return tenant == before || before == Block::kZeros || tenant == kNoTenant;
}

// The number of times that an allocation has other sessions' memory freed: free memory may be fragmented, and other
// threads may take it.
constexpr int kMaxRoomMade = 16;

bool any_divisions(const AllocConf& conf) {
  const auto& divisions = conf.roundup_power2_divisions;
  return std::any_of(divisions.begin(), divisions.end(), [](uint16_t d) { return d > 1; });
}

}  // namespace

CachingPool::CachingPool(Device device, PoolParts parts, PoolSizes sizes, const AllocConf& conf)
    : device_(device),
      sizes_(sizes),
      conf_(conf),
      rounds_(any_divisions(conf)),
      source_(std::move(parts.segments)),
      events_(std::move(parts.events)),
      // Not used with asynchronous streams, because size-class lists do not distinguish streams.
      size_classes_(std::min(sizes.size_class_limit, sizes.small_limit), sizes.granule,
                    events_ ? 0 : sizes.size_class_capacity),
      heap_(stats_),
      deferred_(events_.get()) {
  if (!parts.ranges || !conf.expandable_segments) return;
  expandable_ = std::make_unique<ExpandableSegments>(
      std::move(parts.ranges), heap_, stats_, ExpandableSegments::Pieces{sizes.small_segment, sizes.large_segment});
}

CachingPool::CachingPool(Device device, std::unique_ptr<SegmentSource> segments, PoolSizes sizes)
    : CachingPool(device, only(std::move(segments)), sizes, {}) {}

CachingPool::~CachingPool() {
  for (const auto& [data, segment] : heap_.segments()) {
    if (segment->expandable) continue;
    if (on_cpu()) allow_access(data, segment->bytes);
    source_->unmap(data, segment->bytes);
  }
}

size_t CachingPool::rounded(size_t bytes) const {
  // Limits the size before rounding, so that rounding does not overflow to a small size.
  constexpr size_t kMaxRequest = std::numeric_limits<size_t>::max() / 4;
  bytes = std::min(bytes, kMaxRequest) + sizes_.red_zone;
  if (rounds_) [[unlikely]]
    return conf_.rounded(bytes, sizes_.granule);
  return (bytes + sizes_.granule - 1) & ~(sizes_.granule - 1);
}

void CachingPool::zero(void* p, size_t requested, size_t size, Stream* stream) {
  if (device_.type == DeviceType::kCPU) {  // includes staging memory; no queued work uses it now
    allow_access(p, size);
    std::memset(p, 0, size);
    forbid_access(p, size);
    allow_access(p, requested);
    return;
  }
  try {
    stream->zero(p, size);
  } catch (...) {  // the device is lost
    deallocate(p, requested);
    throw;
  }
}

void* CachingPool::allocate(size_t bytes, const AllocRequest& alloc_request) {
  const auto [stream, tenant, account, site] = alloc_request;
  if (bytes == 0) return nullptr;
  const size_t size = rounded(bytes);
  MutexLock lock(mutex_);
  if (const auto [p, before] = size_classes_.take(size); p) [[likely]] {
    count_allocation(bytes, size, true);
    if (on_cpu()) allow_access(p, bytes);
    if (may_reuse(tenant, before)) [[likely]]
      return p;
    lock.unlock();
    zero(p, bytes, size, stream);
    return p;
  }
  const uintptr_t id = stream ? stream->id() : 0;
  for (int attempt = 0;; ++attempt) {
    const Request request{size, id, arena_of(id), is_small(size)};
    if (Block* block = find_or_grow(request)) [[likely]] {
      count_allocation(bytes, block->size, request.small);
      if (!size_classes_.can_cache(size)) {
        block->requested = bytes;
        block->site = site;
        block->owner = account ? *account : nullptr;
      } else {
        block->requested = 0;
      }
      void* p = block->data;
      if (on_cpu()) allow_access(p, bytes);
      // Zeroes the whole block, because the tenant may later reuse more of it.
      const size_t block_size = block->size;
      const bool is_seen = may_reuse(tenant, block->tenant);
      lock.unlock();
      if (!is_seen) zero(p, bytes, block_size, stream);
      return p;
    }
    if (attempt < kMaxRoomMade && may_wait_for_room(size)) {
      lock.unlock();
      const bool again = make_room(device_, size, account ? account->get() : nullptr);
      lock.lock();
      if (again) continue;
    }
    ++stats_.out_of_memory;
    OutOfMemory report = describe_out_of_memory(bytes, request);
    lock.unlock();
    throw report.error();
  }
}

// A graph that is being captured contains the addresses of its memory, and no other stream may be waited for.
bool CachingPool::may_wait_for_room(size_t size) const { return !capturing() && (limit_ == 0 || size <= limit_); }

void CachingPool::count_allocation(size_t bytes, size_t block_bytes, bool small) {
  ++stats_.allocations;
  stats_.add(&PoolStats::requested, small, bytes);
  stats_.add(&PoolStats::allocated, small, block_bytes);
  // Without events, active equals allocated.
  if (events_) stats_.add(&PoolStats::active, small, block_bytes);
}

void CachingPool::deallocate(void* p, size_t bytes, Tenant tenant) {
  if (!p) return;
  const size_t size = rounded(bytes);
  std::shared_ptr<const Account> owner;  // released after the lock
  MutexLock lock(mutex_);
  if (size_classes_.put(p, size, tenant)) [[likely]] {
    if (on_cpu()) forbid_access(p, bytes);
    stats_.subtract(&PoolStats::requested, true, bytes);
    stats_.subtract(&PoolStats::allocated, true, size);
    return;
  }
  auto at = used_.find(p);
  Block* block = at->second;
  const bool small = is_small(block->size);
  stats_.subtract(&PoolStats::requested, small, bytes);
  stats_.subtract(&PoolStats::allocated, small, block->size);
  used_.erase(at);
  owner = std::move(block->owner);
  block->tenant = tenant;
  if (!block->other_streams.empty()) {
    block->state = Block::State::kWaiting;
    if (deferred_.add(block, capturing())) return;
  }
  release(block);
}

void CachingPool::release(Block* block) {
  if (events_) stats_.subtract(&PoolStats::active, is_small(block->size), block->size);
  if (on_cpu()) forbid_access(block->data, block->size);
  block->freed_at = searches_;
  heap_.free(block);
}

void CachingPool::record_stream(void* p, Stream& stream) {
  const StreamId id{stream.device(), stream.id()};
  if (!p || id.id == 0) return;  // an empty block, or a CPU stream, which has no pending work
  {
    MutexLock lock(mutex_);
    auto at = used_.find(p);
    check(at != used_.end(), "[record_stream] no block is allocated at ", absl::Hex(reinterpret_cast<uintptr_t>(p)));
    Block* block = at->second;
    if (id == StreamId{device_, block->segment->stream}) return;
    if (events_) {
      if (std::find(block->other_streams.begin(), block->other_streams.end(), id) == block->other_streams.end())
        block->other_streams.push_back(id);
      return;
    }
  }
  stream.synchronize();
}

Arena& CachingPool::arena_of(uintptr_t stream) {
  for (const Capture& capture : captures_) {
    if (capture.stream == stream) return *capture.arena;
  }
  return shared_;
}

Block* CachingPool::best_fit(const Request& request) const {
  return request.arena.free(request.small).best_fit(request.stream, request.size);
}

Block* CachingPool::find(const Request& request) {
  Block* block = best_fit(request);
  if (!block) return nullptr;
  // A block that is not split must not be much larger than the request, so that it stays available for larger requests.
  const bool oversize = request.size >= conf_.max_split_size;
  if (!oversize && block->size >= conf_.max_split_size && !block->segment->expandable) return nullptr;
  if (oversize && block->size - request.size > conf_.max_non_split_rounding && !block->segment->expandable)
    return nullptr;
  return mark_used(block, request);
}

bool CachingPool::should_split(const Block& block, const Request& request) const {
  const size_t rest = block.size - request.size;
  if (request.small || block.segment->expandable) return rest >= sizes_.granule;
  // A small remainder stays part of the large block, because it would be useless as a separate block.
  return rest > sizes_.small_limit && request.size < conf_.max_split_size;
}

Block* CachingPool::mark_used(Block* block, const Request& request) {
  heap_.use(block, request.size, should_split(*block, request));
  used_.emplace(block->data, block);
  return block;
}

void CachingPool::collect_deferred() {
  deferred_.collect_completed([this](Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { release(block); });
}

void CachingPool::flush_size_classes() {
  size_classes_.for_each([&](const SizeClassCache::Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    auto at = used_.find(entry.block);
    Block* block = at->second;
    used_.erase(at);
    block->tenant = entry.tenant;
    block->freed_at = searches_;
    heap_.free(block);
  });
  size_classes_.clear();
}

AllocatorStats CachingPool::stats() const {
  MutexLock lock(mutex_);
  AllocatorStats stats = stats_;
  stats.limit = limit_;
  if (!events_) {
    for (PoolStats* pool : {&stats.all, &stats.small, &stats.large}) pool->active = pool->allocated;
  }
  return stats;
}

std::vector<BlockInfo> CachingPool::snapshot() const {
  struct Origin {
    std::shared_ptr<const Account> owner;
    uint32_t site;
  };
  std::vector<BlockInfo> infos;
  std::vector<Origin> origins;
  {
    MutexLock lock(mutex_);
    absl::flat_hash_set<const void*> cached;
    size_classes_.for_each([&](const SizeClassCache::Entry& entry) { cached.insert(entry.block); });
    for (const auto& [data, segment] : heap_.segments()) {
      for (const Block* block = segment->first; block; block = block->right) {
        if (block->is_hole()) continue;
        const bool used = block->state == Block::State::kUsed && !cached.contains(block->data);
        BlockInfo info{data, static_cast<uint64_t>(block->data - segment->data), block->size, used};
        info.waiting = block->state == Block::State::kWaiting;
        info.pool = segment->arena->id;
        info.stream = segment->stream;
        if (used) info.requested = block->requested;
        infos.push_back(std::move(info));
        origins.push_back(used ? Origin{block->owner, block->site} : Origin{});
      }
    }
  }
  // Looks up names without holding the lock, because DescribeSite is a callback supplied by the account.
  for (size_t i = 0; i < infos.size(); ++i) {
    if (!origins[i].owner) continue;
    infos[i].owner = origins[i].owner->owner();
    infos[i].tenant = origins[i].owner->tenant();
    infos[i].site_number = origins[i].site;
    infos[i].site = origins[i].owner->describe(origins[i].site);
  }
  return infos;
}

void CachingPool::set_limit(uint64_t bytes) {
  MutexLock lock(mutex_);
  limit_ = bytes;
}

}  // namespace tt
