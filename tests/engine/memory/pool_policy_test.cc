// Effects of TELETENSOR_ALLOC_CONF, and the out-of-memory message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/session/context.h"
#include "tests/engine/memory/device_pool.h"

namespace tt {
namespace {

using testing::HasSubstr;

TEST(PoolPolicyTest, DoesNotSplitBlocksOfMaxSplitSize) {
  DevicePool pool("max_split_size_mb:64");
  char* large = pool.allocate(100 * kMiB);
  pool.deallocate(large, 100 * kMiB);
  EXPECT_NE(pool.allocate(30 * kMiB), large);  // would require a split
  EXPECT_EQ(pool.memory->taken, 130 * kMiB);
  EXPECT_NE(pool.allocate(70 * kMiB), large);  // wastes more than the rounding allows
  EXPECT_EQ(pool.allocate(90 * kMiB), large);
  EXPECT_EQ(pool.stats().all.inactive_split.now, 0u);
  EXPECT_EQ(pool.stats().all.allocated.now, 200 * kMiB);
}

TEST(PoolPolicyTest, LimitsBadFitsByMaxNonSplitRounding) {
  DevicePool pool("max_split_size_mb:64,max_non_split_rounding_mb:30");
  char* large = pool.allocate(100 * kMiB);
  pool.deallocate(large, 100 * kMiB);
  EXPECT_EQ(pool.allocate(70 * kMiB), large);
}

TEST(PoolPolicyTest, ServesRequestJustBelowMaxSplitSize) {
  DevicePool pool("max_split_size_mb:21");
  EXPECT_NE(pool.allocate(20 * kMiB + 512), nullptr);  // is part of a segment that is larger than max_split_size
}

TEST(PoolPolicyTest, ReleasesUnsplitBlocksFirst) {
  DevicePool pool("max_split_size_mb:64", 200 * kMiB);
  pool.deallocate(pool.allocate(30 * kMiB), 30 * kMiB);
  pool.deallocate(pool.allocate(100 * kMiB), 100 * kMiB);
  EXPECT_NE(pool.allocate(150 * kMiB), nullptr);
  EXPECT_EQ(pool.stats().retries, 1u);
  EXPECT_EQ(pool.memory->taken, 180 * kMiB) << "the cached block of 30 MiB must stay";
}

TEST(PoolPolicyTest, CollectsOldBlocksAboveThreshold) {
  DevicePool pool("garbage_collection_threshold:0.5", 200 * kMiB);
  char* old = pool.allocate(40 * kMiB);
  char* recent = pool.allocate(60 * kMiB);
  pool.deallocate(old, 40 * kMiB);
  for (int i = 0; i < 20; ++i) pool.deallocate(pool.allocate(1000), 1000);
  pool.deallocate(recent, 60 * kMiB);
  EXPECT_EQ(pool.stats().system_frees, 0u);
  pool.allocate(70 * kMiB);  // 102 MiB are reserved, above the threshold of 100
  EXPECT_EQ(pool.stats().system_frees, 1u);
  EXPECT_EQ(pool.memory->taken, 132 * kMiB) << "the least recently used block must be freed";
  EXPECT_EQ(pool.allocate(60 * kMiB), recent);
}

TEST(PoolPolicyTest, CollectsNothingBelowThreshold) {
  DevicePool pool("garbage_collection_threshold:0.9", 200 * kMiB);
  pool.deallocate(pool.allocate(100 * kMiB), 100 * kMiB);
  pool.allocate(20 * kMiB, pool.other);
  EXPECT_EQ(pool.stats().system_frees, 0u);
}

TEST(PoolPolicyTest, RoundsSizesAsConfigured) {
  DevicePool pool("roundup_power2_divisions:4");
  char* p = pool.allocate(33 * kMiB);
  EXPECT_EQ(pool.stats().all.allocated.now, 40 * kMiB);
  EXPECT_EQ(pool.stats().all.requested.now, 33 * kMiB);
  pool.deallocate(p, 33 * kMiB);
  EXPECT_EQ(pool.allocate(39 * kMiB), p);
}

TEST(PoolPolicyTest, StatisticsSeparateSmallFromLarge) {
  DevicePool pool;
  char* small = pool.allocate(1000);
  pool.allocate(3 * kMiB);
  AllocatorStats stats = pool.stats();
  EXPECT_EQ(stats.small.requested.now, 1000u);
  EXPECT_EQ(stats.small.allocated.now, 1024u);
  EXPECT_EQ(stats.small.reserved.now, 2 * kMiB);
  EXPECT_EQ(stats.small.inactive_split.now, 2 * kMiB - 1024);
  EXPECT_EQ(stats.large.allocated.now, 3 * kMiB);
  EXPECT_EQ(stats.large.reserved.now, 20 * kMiB);
  EXPECT_EQ(stats.large.inactive_split.now, 17 * kMiB);
  EXPECT_EQ(stats.all.reserved.now, 22 * kMiB);
  EXPECT_EQ(stats.system_allocations, 2u);
  pool.deallocate(small, 1000);
  stats = pool.stats();
  EXPECT_EQ(stats.small.inactive_split.now, 0u) << "a whole segment is free now";
  EXPECT_EQ(stats.small.allocated.now, 0u);
  EXPECT_EQ(stats.small.allocated.peak, 1024u);
  EXPECT_EQ(stats.all.allocated.peak, 3 * kMiB + 1024);
}

TEST(PoolPolicyTest, OutOfMemoryErrorNamesHoldersAndAdvice) {
  DevicePool pool("", 64 * kMiB);
  Context context;
  ContextScope scope(&context);
  context.account = std::make_shared<Account>("session 1");
  pool.allocate(4 * kMiB);
  context.account = std::make_shared<Account>("session 2");
  pool.allocate(40 * kMiB);
  EXPECT_EQ(pool.error_of(30 * kMiB),
            "[allocate] out of memory on cuda:0: requested 30 MiB, 4 MiB of 64 MiB are free on the device, 44 MiB are "
            "allocated, 60 MiB reserved, 16 MiB of them unused in blocks of at most 16 MiB; held by: session 2 40 MiB, "
            "session 1 4 "
            "MiB; try: smaller batches, or wait for other sessions (`teletensor status` shows them)");
  EXPECT_EQ(pool.stats().out_of_memory, 1u);
  EXPECT_EQ(pool.stats().all.requested.now, 44 * kMiB);
}

TEST(PoolPolicyTest, FragmentationErrorSuggestsExpandableSegments) {
  DevicePool pool("", 60 * kMiB);
  std::vector<char*> blocks;
  for (int i = 0; i < 12; ++i) blocks.push_back(pool.allocate(5 * kMiB));
  for (size_t i = 0; i < blocks.size(); i += 2) pool.deallocate(blocks[i], 5 * kMiB);
  EXPECT_THAT(pool.error_of(15 * kMiB), HasSubstr("try: free memory is fragmented: start the engine with "
                                                  "TELETENSOR_ALLOC_CONF=expandable_segments:True"));
}

}  // namespace
}  // namespace tt
