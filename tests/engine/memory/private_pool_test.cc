// Private pools: memory with fixed addresses, for graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/memory/device_pool.h"

namespace tt {
namespace {

using testing::HasSubstr;

struct PrivatePoolTest : testing::Test {
  DevicePool pool{"", 64 * kMiB};
  uint64_t id = pool.pool.make_pool();
};

TEST_F(PrivatePoolTest, ServesItsStreamOnly) {
  char* before = pool.allocate(1000);
  pool.deallocate(before, 1000);
  pool.pool.begin_pool(id, pool.stream);
  char* p = pool.allocate(1000);
  EXPECT_NE(p, before);
  pool.deallocate(p, 1000);
  EXPECT_EQ(pool.allocate(1000), p);  // reusable within the capture
  char* q = pool.allocate(1000, pool.other);
  pool.pool.end_pool(id, pool.stream);
  EXPECT_EQ(pool.allocate(1000), before);
  for (const BlockInfo& block : pool.pool.snapshot()) {
    const char* begin = static_cast<const char*>(block.segment) + block.offset;
    EXPECT_FALSE(begin == p && block.pool != id);
    EXPECT_FALSE((begin == before || begin == q) && block.pool != 0);
  }
}

TEST_F(PrivatePoolTest, LaterFreesReturnToPool) {
  pool.pool.begin_pool(id, pool.stream);
  char* p = pool.allocate(1000);
  pool.pool.end_pool(id, pool.stream);
  pool.deallocate(p, 1000);
  EXPECT_NE(pool.allocate(1000), p);
  pool.pool.begin_pool(id, pool.stream);  // shared by a second graph
  EXPECT_EQ(pool.allocate(1000), p);
  pool.pool.end_pool(id, pool.stream);
}

TEST_F(PrivatePoolTest, IsReleasedWithLastGraph) {
  for (int graph = 0; graph < 2; ++graph) {
    pool.pool.begin_pool(id, pool.stream);
    pool.deallocate(pool.allocate(30 * kMiB), 30 * kMiB);
    pool.pool.end_pool(id, pool.stream);
  }
  EXPECT_EQ(pool.memory->taken, 30 * kMiB);
  pool.pool.release_pool(id);
  pool.pool.empty_cache();
  EXPECT_EQ(pool.memory->taken, 30 * kMiB) << "the second graph still uses it";
  EXPECT_THAT(pool.error_of(40 * kMiB), HasSubstr("out of memory"));
  pool.pool.release_pool(id);
  EXPECT_NE(pool.allocate(40 * kMiB), nullptr) << "private memory must be freed when memory is short";
  EXPECT_EQ(pool.memory->taken, 40 * kMiB);
  EXPECT_EQ(pool.stats().retries, 1u);
}

TEST_F(PrivatePoolTest, BlocksInUseOutliveGraph) {
  pool.pool.begin_pool(id, pool.stream);
  char* p = pool.allocate(1000);
  pool.pool.end_pool(id, pool.stream);
  pool.pool.release_pool(id);
  pool.pool.empty_cache();
  p[999] = 1;
  EXPECT_EQ(pool.memory->taken, 2 * kMiB);
  pool.deallocate(p, 1000);
  pool.pool.empty_cache();
  EXPECT_EQ(pool.memory->taken, 0u);
}

TEST_F(PrivatePoolTest, CaptureDefersReleasesAndEvents) {
  char* cached = pool.allocate(30 * kMiB, pool.other);
  pool.deallocate(cached, 30 * kMiB);
  char* used = pool.allocate(1000, pool.other);
  pool.pool.record_stream(used, pool.third);
  pool.pool.begin_pool(id, pool.stream);
  pool.deallocate(used, 1000);
  EXPECT_TRUE(pool.events->recorded.empty());
  pool.pool.empty_cache();
  std::string error = pool.error_of(40 * kMiB);
  EXPECT_THAT(error, HasSubstr("before capturing it"));
  EXPECT_EQ(pool.stats().system_frees, 0u);
  pool.pool.end_pool(id, pool.stream);
  pool.events->reach_when_asked = true;
  EXPECT_NE(pool.allocate(40 * kMiB), nullptr);
  EXPECT_EQ(pool.events->recorded[3], 1);
}

TEST_F(PrivatePoolTest, MisuseIsError) {
  EXPECT_THROW(pool.pool.begin_pool(id + 1, pool.stream), Error);
  EXPECT_THROW(pool.pool.begin_pool(0, pool.stream), Error);
  EXPECT_THROW(pool.pool.end_pool(id, pool.stream), Error);
  EXPECT_THROW(pool.pool.release_pool(id), Error);
  pool.pool.begin_pool(id, pool.stream);
  EXPECT_THROW(pool.pool.begin_pool(pool.pool.make_pool(), pool.stream), Error);
  EXPECT_THROW(pool.pool.end_pool(id, pool.other), Error);
  pool.pool.end_pool(id, pool.stream);
  pool.pool.release_pool(id);
  EXPECT_THROW(pool.pool.release_pool(id), Error);
}

}  // namespace
}  // namespace tt
