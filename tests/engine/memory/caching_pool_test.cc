#include "engine/memory/caching_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>

#include "engine/schema/error.h"
#include "tests/engine/memory/bounded_memory.h"
#include "tests/engine/memory/exact_sizes.h"
#include "tests/engine/memory/pool_model.h"

namespace tt {
namespace {

using testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;

PoolSizes merge_at_once() {
  PoolSizes sizes;
  sizes.size_class_capacity = 0;
  return sizes;
}

struct Pool {
  explicit Pool(PoolSizes sizes = merge_at_once(), size_t capacity = SIZE_MAX)
      : Pool(std::make_unique<BoundedMemory>(capacity), sizes) {}
  Pool(std::unique_ptr<BoundedMemory> source, PoolSizes sizes)
      : system(source.get()), pool(Device{}, std::move(source), exact_sizes(sizes)) {}
  char* allocate(size_t bytes) { return static_cast<char*>(pool.allocate(bytes)); }
  void deallocate(void* p, size_t bytes) { pool.deallocate(p, bytes); }
  std::string error_of(size_t bytes) {
    try {
      allocate(bytes);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kOutOfMemory);
      return e.message();
    }
    return "no error";
  }
  size_t largest_free() {
    size_t largest = 0;
    for (const BlockInfo& block : pool.snapshot()) largest = std::max(largest, block.in_use ? 0 : block.size);
    return largest;
  }
  BoundedMemory* system;
  CachingPool pool;
};

// A model that also fills its blocks with values and checks that no other user writes to them.
class RandomWorkload {
 public:
  explicit RandomWorkload(bool merged) : model_(merged) {}
  void allocate(Pool& pool, size_t bytes) {
    char* p = pool.allocate(bytes);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
    unsigned char mark = static_cast<unsigned char>(++marks_);
    std::memset(p, mark, bytes);
    live_.push_back({p, bytes, mark});
    model_.add(p, bytes);
  }
  void deallocate(Pool& pool, size_t index) {
    std::swap(live_[index], live_.back());
    const Live live = live_.back();
    live_.pop_back();
    ASSERT_EQ(static_cast<unsigned char>(live.p[0]), live.mark);
    ASSERT_EQ(static_cast<unsigned char>(live.p[live.bytes - 1]), live.mark);
    model_.remove(live.p);
    pool.deallocate(live.p, live.bytes);
  }
  void check(const Pool& pool) const { model_.check(pool.pool, pool.system->taken); }
  size_t size() const { return live_.size(); }

 private:
  struct Live {
    char* p;
    size_t bytes;
    unsigned char mark;
  };
  PoolModel model_;
  std::vector<Live> live_;
  unsigned marks_ = 0;
};

size_t random_size(std::mt19937& random) {
  // Log-uniform sizes: 1 byte to 16 MiB.
  double exponent = std::uniform_real_distribution<double>(0, 24)(random);
  return static_cast<size_t>(std::exp2(exponent));
}

class CachingPoolRandomTest : public testing::TestWithParam<size_t> {};

TEST_P(CachingPoolRandomTest, KeepsInvariants) {
  PoolSizes sizes;
  sizes.size_class_capacity = GetParam();
  Pool pool(sizes);
  RandomWorkload model(GetParam() == 0);
  std::mt19937 random(20);
  for (int step = 0; step < 4000; ++step) {
    bool grow = model.size() < 5 || (model.size() < 60 && random() % 2 == 0);
    if (grow) {
      ASSERT_NO_FATAL_FAILURE(model.allocate(pool, random_size(random)));
    } else {
      ASSERT_NO_FATAL_FAILURE(model.deallocate(pool, random() % model.size()));
    }
    if (step % 501 == 0) pool.pool.empty_cache();
    ASSERT_NO_FATAL_FAILURE(model.check(pool)) << "after step " << step;
  }
  while (model.size() > 0) ASSERT_NO_FATAL_FAILURE(model.deallocate(pool, model.size() - 1));
  ASSERT_NO_FATAL_FAILURE(model.check(pool));
  if (GetParam() == 0) {
    for (const BlockInfo& block : pool.pool.snapshot()) EXPECT_EQ(block.offset, 0u) << "one free block per segment";
  }
  pool.pool.empty_cache();
  EXPECT_EQ(pool.system->taken, 0u);
  EXPECT_TRUE(pool.pool.snapshot().empty());
}

INSTANTIATE_TEST_SUITE_P(QuickCapacity, CachingPoolRandomTest, testing::Values(size_t{0}, size_t{64} << 10, 8 * kMiB));

TEST(CachingPoolTest, ZeroBytesAreNull) {
  Pool pool;
  EXPECT_EQ(pool.allocate(0), nullptr);
  pool.deallocate(nullptr, 0);
  EXPECT_EQ(pool.system->taken, 0u);
}

TEST(CachingPoolTest, SeparatesSmallAndLargeBlocks) {
  Pool pool;
  pool.allocate(100);
  EXPECT_EQ(pool.system->taken, 2 * kMiB);
  pool.allocate(kMiB);  // the largest size in a small segment
  EXPECT_EQ(pool.system->taken, 2 * kMiB);
  pool.allocate(kMiB + 1);
  EXPECT_EQ(pool.system->taken, 22 * kMiB);
  pool.allocate(9 * kMiB);
  EXPECT_EQ(pool.system->taken, 22 * kMiB);
  pool.allocate(11 * kMiB);
  EXPECT_EQ(pool.system->taken, 34 * kMiB);
}

TEST(CachingPoolTest, UsesBestFitWithLowestAddress) {
  Pool pool;
  std::vector<std::pair<char*, size_t>> holes;
  for (size_t bytes : {4096, 1024, 2048, 1024}) {
    holes.emplace_back(pool.allocate(bytes), bytes);
    pool.allocate(64);  // keeps the free blocks apart
  }
  for (auto [p, bytes] : holes) pool.deallocate(p, bytes);
  EXPECT_EQ(pool.allocate(1000), holes[1].first);
  EXPECT_EQ(pool.allocate(1000), holes[3].first);
  EXPECT_EQ(pool.allocate(1000), holes[2].first);
  EXPECT_EQ(pool.allocate(3000), holes[0].first);
}

// The pool poisons memory outside of its blocks.
TEST(CachingPoolDeathTest, MemoryBesideABlockAndAfterItsEndIsForbidden) {
  if (kRedZone == 0) GTEST_SKIP() << "needs AddressSanitizer";
  CachingPool pool(Device{}, std::make_unique<BoundedMemory>(SIZE_MAX), PoolSizes());
  auto* p = static_cast<volatile char*>(pool.allocate(128));
  auto* neighbour = static_cast<volatile char*>(pool.allocate(128));
  p[127] = neighbour[0] = 1;
  EXPECT_DEATH(p[128] = 1, "use-after-poison");
  EXPECT_DEATH(neighbour[-1] = 1, "use-after-poison");
  pool.deallocate(const_cast<char*>(p), 128);
  EXPECT_DEATH(p[0] = 1, "use-after-poison");
  pool.deallocate(const_cast<char*>(neighbour), 128);
}

TEST(CachingPoolTest, WarmStepMakesNoSystemCalls) {
  Pool pool{PoolSizes()};
  auto step = [&] {
    std::vector<std::pair<void*, size_t>> blocks;
    for (size_t bytes = 256; bytes <= 64 * kMiB; bytes *= 4) blocks.emplace_back(pool.allocate(bytes), bytes);
    for (auto [p, bytes] : blocks) pool.deallocate(p, bytes);
  };
  step();
  AllocatorStats warm = pool.pool.stats();
  for (int i = 0; i < 20; ++i) step();
  EXPECT_EQ(pool.pool.stats().system_allocations, warm.system_allocations);
  EXPECT_EQ(pool.pool.stats().system_frees, 0u);
}

TEST(CachingPoolTest, LimitErrorReportsHeldBytes) {
  Pool pool;
  pool.pool.set_limit(64 * kMiB);
  char* held = pool.allocate(40 * kMiB);
  EXPECT_EQ(pool.error_of(30 * kMiB),
            "[allocate] out of memory on cpu: requested 30 MiB, the limit is 64 MiB, 40 MiB are allocated, 40 MiB "
            "reserved; try: "
            "smaller batches, or `del` tensors that are no longer needed");
  EXPECT_EQ(pool.pool.stats().out_of_memory, 1u);
  EXPECT_EQ(pool.pool.stats().all.requested.now, 40 * kMiB);
  pool.deallocate(held, 40 * kMiB);
  EXPECT_NE(pool.allocate(30 * kMiB), nullptr);
}

TEST(CachingPoolTest, OversizedRequestsAreOutOfMemory) {
  Pool pool;
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2}) {
    EXPECT_THAT(pool.error_of(bytes), HasSubstr("out of memory")) << bytes;
    pool.pool.set_limit(kMiB);
  }
  EXPECT_EQ(pool.pool.stats().all.requested.now, 0u);
}

TEST(CachingPoolTest, ReleasesCachedSegmentsBeforeFailing) {
  Pool pool(merge_at_once(), 100 * kMiB);
  void* first = pool.allocate(60 * kMiB);
  pool.deallocate(first, 60 * kMiB);
  EXPECT_NE(pool.allocate(80 * kMiB), nullptr);
  EXPECT_EQ(pool.pool.stats().retries, 1u);
  EXPECT_EQ(pool.system->taken, 80 * kMiB);
  EXPECT_THAT(pool.error_of(30 * kMiB), HasSubstr("20 MiB of 100 MiB are free on the device"));
}

TEST(CachingPoolTest, UsesLastBytesBelowLimit) {
  Pool pool;
  pool.pool.set_limit(3 * kMiB);
  EXPECT_NE(pool.allocate(2 * kMiB), nullptr);   // a segment of 20 MiB exceeds the limit
  EXPECT_NE(pool.allocate(512 << 10), nullptr);  // a small segment of 2 MiB exceeds it too
  EXPECT_NE(pool.allocate(512 << 10), nullptr);
  EXPECT_THAT(pool.error_of(64), HasSubstr("out of memory"));
}

TEST(CachingPoolTest, SmallBlocksUseLargeSegmentsBeforeFailing) {
  Pool pool(merge_at_once(), 20 * kMiB);
  pool.allocate(5 * kMiB);
  EXPECT_NE(pool.allocate(100), nullptr);
  EXPECT_EQ(pool.pool.stats().all.active.now, 5 * kMiB + 128);
  EXPECT_EQ(pool.largest_free(), 15 * kMiB - 128);
}

TEST(CachingPoolTest, CountsSmallBlocksOfLargeSegmentsAsSmall) {
  Pool pool(PoolSizes{}, 20 * kMiB);
  char* large = pool.allocate(2 * kMiB);  // uses all of the system's memory as one segment
  char* small = pool.allocate(1000);      // from the same segment, because the system has no memory left
  EXPECT_EQ(pool.pool.stats().small.allocated.now, 1024u);
  EXPECT_EQ(pool.pool.stats().large.allocated.now, 2 * kMiB);
  pool.deallocate(small, 1000);
  EXPECT_EQ(pool.pool.stats().small.allocated.now, 0u);
  EXPECT_EQ(pool.pool.stats().small.requested.now, 0u);
  EXPECT_EQ(pool.allocate(1000), small);  // the same block, from the cache
  pool.deallocate(small, 1000);
  pool.deallocate(large, 2 * kMiB);
  for (const PoolStats& stats : {pool.pool.stats().all, pool.pool.stats().small, pool.pool.stats().large}) {
    EXPECT_EQ(stats.requested.now, 0u);
    EXPECT_EQ(stats.allocated.now, 0u);
    EXPECT_EQ(stats.active.now, 0u);
  }
}

TEST(CachingPoolTest, MergesCachedBlocksBeforeSystemAllocation) {
  Pool pool{PoolSizes()};
  std::vector<void*> blocks;
  for (size_t i = 0; i < 2 * kMiB / 4096; ++i) blocks.push_back(pool.allocate(4096));
  for (void* p : blocks) pool.deallocate(p, 4096);
  EXPECT_NE(pool.allocate(kMiB), nullptr);
  EXPECT_EQ(pool.system->taken, 2 * kMiB);
}

TEST(CachingPoolTest, ThreadsSharePool) {
  Pool pool{PoolSizes()};
  std::mutex mutex;
  std::vector<std::pair<char*, size_t>> shared;  // freed by any thread
  auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 5000; ++i) {
      size_t bytes = 1 + random() % (i % 50 == 0 ? 4 * kMiB : 8192);
      char* p = pool.allocate(bytes);
      p[0] = p[bytes - 1] = static_cast<char>(bytes);
      std::pair<char*, size_t> other{nullptr, 0};
      {
        std::lock_guard lock(mutex);
        shared.emplace_back(p, bytes);
        if (shared.size() > 40) {
          std::swap(shared[random() % shared.size()], shared.back());
          other = shared.back();
          shared.pop_back();
        }
      }
      if (!other.first) continue;
      ASSERT_EQ(other.first[0], static_cast<char>(other.second));
      ASSERT_EQ(other.first[other.second - 1], static_cast<char>(other.second));
      pool.deallocate(other.first, other.second);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  for (auto [p, bytes] : shared) pool.deallocate(p, bytes);
  EXPECT_EQ(pool.pool.stats().all.requested.now, 0u);
  EXPECT_EQ(pool.pool.stats().all.active.now, 0u);
  pool.pool.empty_cache();
  EXPECT_EQ(pool.system->taken, 0u);
}

}  // namespace
}  // namespace tt
