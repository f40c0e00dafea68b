#include "engine/memory/expandable_segments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/engine/memory/device_pool.h"
#include "tests/engine/memory/pool_model.h"

namespace tt {
namespace {

using testing::HasSubstr;

constexpr const char* kExpandable = "expandable_segments:True";

TEST(ExpandableSegmentsTest, GrowInPlace) {
  DevicePool pool(kExpandable);
  char* first = pool.allocate(15 * kMiB);
  char* second = pool.allocate(15 * kMiB);
  EXPECT_EQ(second, first + 15 * kMiB);
  EXPECT_EQ(pool.ranges->taken, 40 * kMiB);
  EXPECT_EQ(pool.ranges->ranges, 1);
  EXPECT_EQ(pool.memory->taken, 0u);
  second[15 * kMiB - 1] = 1;
}

TEST(ExpandableSegmentsTest, GrowingShapeReservesOnlyItsSize) {
  DevicePool pool(kExpandable, 400 * kMiB);
  for (size_t mib = 10; mib <= 390; mib += 10) {
    char* p = pool.allocate(mib * kMiB);
    p[mib * kMiB - 1] = 1;
    pool.deallocate(p, mib * kMiB);
  }
  EXPECT_EQ(pool.stats().retries, 0u);
  EXPECT_EQ(pool.ranges->taken, 400 * kMiB);
}

TEST(ExpandableSegmentsTest, SeparatesStreamsAndSizeClasses) {
  DevicePool pool(kExpandable);
  pool.allocate(1000);
  pool.allocate(1000, pool.other);
  pool.allocate(5 * kMiB);
  EXPECT_EQ(pool.ranges->ranges, 3);
  EXPECT_EQ(pool.ranges->taken, 24 * kMiB);
}

TEST(ExpandableSegmentsTest, ReleaseUnusedPages) {
  DevicePool pool(kExpandable);
  char* a = pool.allocate(30 * kMiB);
  char* b = pool.allocate(5 * kMiB);
  char* c = pool.allocate(60 * kMiB);
  EXPECT_EQ(pool.ranges->taken, 100 * kMiB);
  pool.deallocate(a, 30 * kMiB);
  pool.deallocate(c, 60 * kMiB);
  pool.pool.empty_cache();
  EXPECT_EQ(pool.ranges->taken, 20 * kMiB);  // used by b
  b[0] = b[5 * kMiB - 1] = 1;
  char* again = pool.allocate(30 * kMiB);
  EXPECT_EQ(again, a) << "the hole must be reused";
  again[0] = again[30 * kMiB - 1] = 1;
  pool.deallocate(again, 30 * kMiB);
  pool.deallocate(b, 5 * kMiB);
  pool.pool.empty_cache();
  EXPECT_EQ(pool.ranges->taken, 0u);
  EXPECT_EQ(pool.ranges->ranges, 0);
  EXPECT_TRUE(pool.pool.snapshot().empty());
}

TEST(ExpandableSegmentsTest, ReusesPagesOfAnotherStream) {
  DevicePool pool(kExpandable, 100 * kMiB);
  pool.deallocate(pool.allocate(80 * kMiB, pool.stream), 80 * kMiB);
  EXPECT_NE(pool.allocate(80 * kMiB, pool.other), nullptr);
  EXPECT_EQ(pool.stats().retries, 1u);
}

TEST(ExpandableSegmentsTest, RespectLimit) {
  DevicePool pool(kExpandable);
  pool.pool.set_limit(50 * kMiB);
  EXPECT_NE(pool.allocate(40 * kMiB), nullptr);
  EXPECT_THAT(pool.error_of(15 * kMiB), HasSubstr("the limit is 50 MiB"));
  EXPECT_THAT(pool.error_of(size_t{1} << 50), HasSubstr("out of memory"));
  EXPECT_EQ(pool.ranges->taken, 40 * kMiB);
}

TEST(ExpandableSegmentsTest, SeparatesPrivatePools) {
  DevicePool pool(kExpandable);
  char* outside = pool.allocate(5 * kMiB);
  const uint64_t id = pool.pool.make_pool();
  pool.pool.begin_pool(id, pool.stream);
  pool.deallocate(pool.allocate(5 * kMiB), 5 * kMiB);
  pool.pool.end_pool(id, pool.stream);
  EXPECT_EQ(pool.ranges->ranges, 2);
  pool.pool.empty_cache();
  EXPECT_EQ(pool.ranges->ranges, 2);
  pool.pool.release_pool(id);
  pool.pool.empty_cache();
  EXPECT_EQ(pool.ranges->ranges, 1);
  pool.deallocate(outside, 5 * kMiB);
}

TEST(ExpandableSegmentsTest, RandomWorkloadKeepsInvariants) {
  DevicePool pool(kExpandable, 300 * kMiB);
  PoolModel model;
  std::mt19937 random(3);
  std::vector<std::pair<char*, size_t>> live;
  int failures = 0;
  for (int step = 0; step < 3000; ++step) {
    if (live.size() < 5 || random() % 2 == 0) {
      const auto bytes = static_cast<size_t>(std::exp2(std::uniform_real_distribution<double>(0, 25.5)(random)));
      try {
        char* p = pool.allocate(bytes, random() % 2 ? pool.stream : pool.other);
        p[0] = p[bytes - 1] = 1;
        ASSERT_NO_FATAL_FAILURE(model.add(p, bytes));
        live.emplace_back(p, bytes);
      } catch (const Error&) {
        ++failures;
      }
    } else {
      std::swap(live[random() % live.size()], live.back());
      model.remove(live.back().first);
      pool.deallocate(live.back().first, live.back().second);
      live.pop_back();
    }
    if (step % 97 == 0) pool.pool.empty_cache();
    ASSERT_NO_FATAL_FAILURE(model.check(pool.pool, pool.ranges->taken)) << "after step " << step;
  }
  EXPECT_GT(failures, 0) << "the trace never ran out of memory";
  for (auto [p, bytes] : live) pool.deallocate(p, bytes);
  pool.pool.empty_cache();
  EXPECT_EQ(pool.ranges->taken, 0u);
  EXPECT_EQ(pool.ranges->ranges, 0);
}

}  // namespace
}  // namespace tt
