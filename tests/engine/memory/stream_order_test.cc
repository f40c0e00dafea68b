// Reuse of freed blocks by a caching pool: by which stream, and when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/session/context.h"
#include "tests/engine/memory/device_pool.h"

namespace tt {
namespace {

using testing::HasSubstr;

TEST(StreamOrderTest, BlockIsReusedInItsStreamOnly) {
  DevicePool pool;
  char* p = pool.allocate(4096, pool.stream);
  pool.deallocate(p, 4096);
  char* q = pool.allocate(4096, pool.other);
  EXPECT_NE(q, p);
  EXPECT_EQ(pool.memory->taken, 4 * kMiB);
  EXPECT_EQ(pool.allocate(4096, pool.stream), p);
  pool.deallocate(q, 4096);
  EXPECT_EQ(pool.allocate(4096, pool.other), q);
}

TEST(StreamOrderTest, WaitsForRecordedStream) {
  DevicePool pool;
  char* p = pool.allocate(1000);
  pool.pool.record_stream(p, pool.other);
  pool.deallocate(p, 1000);
  AllocatorStats stats = pool.stats();
  EXPECT_EQ(stats.all.requested.now, 0u);
  EXPECT_EQ(stats.all.allocated.now, 0u);
  EXPECT_EQ(stats.all.active.now, 1024u);
  EXPECT_TRUE(pool.pool.snapshot()[0].waiting);
  EXPECT_FALSE(pool.pool.snapshot()[0].in_use);
  EXPECT_NE(pool.allocate(1000), p);
  pool.events->finish(2);
  EXPECT_EQ(pool.allocate(1000), p);
  EXPECT_EQ(pool.stats().all.active.now, 2048u);
}

TEST(StreamOrderTest, WaitsForEachRecordedStreamOnce) {
  DevicePool pool;
  char* p = pool.allocate(1000);
  for (int i = 0; i < 3; ++i) {
    pool.pool.record_stream(p, pool.other);
    pool.pool.record_stream(p, pool.third);
  }
  pool.deallocate(p, 1000);
  EXPECT_EQ(pool.events->recorded[2], 1);
  EXPECT_EQ(pool.events->recorded[3], 1);
  pool.events->finish(2);
  EXPECT_NE(pool.allocate(1000), p);
  pool.events->finish(3);
  EXPECT_EQ(pool.allocate(1000), p);
}

TEST(StreamOrderTest, StreamMayEndBeforeFree) {
  DevicePool pool;
  char* p = pool.allocate(1000);
  pool.pool.record_stream(p, *std::make_unique<TestStream>(9));
  pool.deallocate(p, 1000);
  EXPECT_EQ(pool.events->recorded[9], 1);
  pool.events->finish(9);
  EXPECT_EQ(pool.allocate(1000), p);
}

TEST(StreamOrderTest, OwnAndCpuStreamsNeedNoEvent) {
  DevicePool pool;
  TestStream cpu(0, Device{});
  char* p = pool.allocate(1000);
  pool.pool.record_stream(p, pool.stream);
  pool.pool.record_stream(p, cpu);
  pool.deallocate(p, 1000);
  EXPECT_TRUE(pool.events->recorded.empty());
  EXPECT_EQ(pool.allocate(1000), p);
}

TEST(StreamOrderTest, StreamOfAnotherDeviceWithSameIdDiffers) {
  DevicePool pool;
  TestStream elsewhere(1, Device{DeviceType::kCUDA, 1});
  char* p = pool.allocate(1000);
  pool.pool.record_stream(p, elsewhere);
  pool.deallocate(p, 1000);
  EXPECT_NE(pool.allocate(1000), p);
}

TEST(StreamOrderTest, SegmentReadByStreamIsReleasedLater) {
  DevicePool pool;
  char* first = pool.allocate(1000);
  char* second = pool.allocate(1000);
  for (char* p : {first, second}) {
    pool.pool.record_stream(p, pool.other);
    pool.deallocate(p, 1000);
  }
  pool.events->reached[2] = 1;  // the first of two events has completed
  EXPECT_EQ(pool.allocate(1000), first);
  EXPECT_NE(pool.allocate(1000), second);
}

TEST(StreamOrderTest, CapturedStreamIsQueriedLater) {
  DevicePool pool;
  char* p = pool.allocate(1000);
  pool.pool.record_stream(p, pool.other);
  pool.pool.record_stream(p, pool.third);
  pool.events->capturing.insert(2);
  pool.deallocate(p, 1000);
  pool.events->finish(3);
  EXPECT_NE(pool.allocate(1000), p);
  pool.events->capturing.clear();
  EXPECT_NE(pool.allocate(1000), p);  // checks the event now
  EXPECT_EQ(pool.events->recorded[2], 1);
  pool.events->finish(2);
  EXPECT_EQ(pool.allocate(1000), p);
}

TEST(StreamOrderTest, LostDeviceReleasesAllBlocks) {
  DevicePool pool;
  char* before = pool.allocate(1000);
  char* after = pool.allocate(1000);
  pool.pool.record_stream(before, pool.other);
  pool.pool.record_stream(after, pool.other);
  pool.deallocate(before, 1000);
  pool.events->lost = true;
  pool.deallocate(after, 1000);
  EXPECT_NO_THROW(pool.pool.empty_cache());
  EXPECT_EQ(pool.memory->taken, 0u);
}

void expect_that_one_stream_empties_its_cache(const std::string& conf) {
  DevicePool pool(conf);
  pool.deallocate(pool.allocate(30 * kMiB), 30 * kMiB);
  pool.deallocate(pool.allocate(50 * kMiB, pool.other), 50 * kMiB);
  char* used = pool.allocate(1000);
  const uint64_t before = pool.stats().all.reserved.now;
  pool.pool.empty_cache(&pool.other);
  const uint64_t between = pool.stats().all.reserved.now;
  EXPECT_LE(between + 50 * kMiB, before);
  EXPECT_GE(between, 30 * kMiB);
  pool.pool.empty_cache(&pool.stream);
  EXPECT_EQ(pool.stats().all.reserved.now, 2 * kMiB);
  pool.deallocate(used, 1000);
}

TEST(StreamOrderTest, EmptiesCacheOfOneStream) { expect_that_one_stream_empties_its_cache(""); }
TEST(StreamOrderTest, EmptiesExpandableSegmentsOfOneStream) {
  expect_that_one_stream_empties_its_cache("expandable_segments:True");
}

TEST(StreamOrderTest, WaitsForOtherStreamsBeforeOutOfMemory) {
  DevicePool pool("", 32 * kMiB);
  char* p = pool.allocate(30 * kMiB);
  pool.pool.record_stream(p, pool.other);
  pool.deallocate(p, 30 * kMiB);
  pool.events->reach_when_asked = true;
  EXPECT_EQ(pool.allocate(30 * kMiB), p);
  EXPECT_EQ(pool.stats().retries, 1u);
  EXPECT_EQ(pool.stats().out_of_memory, 0u);
}

TEST(StreamOrderTest, ReleasesCacheOfOtherStreamBeforeOutOfMemory) {
  DevicePool pool("", 32 * kMiB);
  pool.deallocate(pool.allocate(30 * kMiB, pool.stream), 30 * kMiB);
  EXPECT_NE(pool.allocate(30 * kMiB, pool.other), nullptr);
  EXPECT_EQ(pool.stats().retries, 1u);
  EXPECT_EQ(pool.stats().system_frees, 1u);
}

TEST(StreamOrderTest, OnlyBlocksCanBeRecorded) {
  DevicePool pool;
  EXPECT_NO_THROW(pool.pool.record_stream(pool.allocate(0), pool.other));
  char* p = pool.allocate(1000);
  EXPECT_THROW(pool.pool.record_stream(p + 64, pool.other), Error);
  pool.deallocate(p, 1000);
  EXPECT_THROW(pool.pool.record_stream(p, pool.other), Error);
}

TEST(StreamOrderTest, SynchronizesStreamOfDeviceWithoutEvents) {
  CachingPool pool(Device{}, std::make_unique<BoundedMemory>());
  TestStream gpu(7);
  void* p = pool.allocate(100);
  pool.record_stream(p, gpu);
  EXPECT_EQ(gpu.synchronized, 1);
  pool.deallocate(p, 100);
}

TEST(StreamOrderTest, SnapshotReportsOwnerAndSiteOfBlocks) {
  DevicePool pool;
  Context context;
  ContextScope scope(&context);
  context.account =
      std::make_shared<Account>("session 4", 0, [](uint32_t site) { return "line " + std::to_string(site); });
  context.site = 12;
  char* p = pool.allocate(1000, pool.other);
  context.account = nullptr;  // the block remembers its account
  std::vector<BlockInfo> blocks = pool.pool.snapshot();
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].owner, "session 4");
  EXPECT_EQ(blocks[0].site, "line 12");
  EXPECT_EQ(blocks[0].requested, 1000u);
  EXPECT_EQ(blocks[0].stream, 2u);
  EXPECT_EQ(blocks[1].owner, "");
  pool.deallocate(p, 1000);
  EXPECT_EQ(pool.pool.snapshot()[0].owner, "");
}

}  // namespace
}  // namespace tt
