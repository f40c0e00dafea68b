// Memory that nobody uses returns to the system; memory that a loop uses again does not.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "engine/memory/asan.h"
#include "engine/memory/caching_pool.h"
#include "tests/engine/memory/bounded_memory.h"
#include "tests/engine/memory/exact_sizes.h"

namespace tt {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kMiB = size_t{1} << 20;
constexpr Tenant kAnna = 1;

class IdleMemoryTest : public testing::Test {
 protected:
  char* allocate(size_t bytes, char mark = 'x') {
    auto* p = static_cast<char*>(pool_.allocate(bytes, {nullptr, kAnna}));
    std::memset(p, mark, bytes);
    return p;
  }
  void free(char* p, size_t bytes) { pool_.deallocate(p, bytes, kAnna); }
  // Lets time pass as the engine does, with a call every 2.5 s.
  void pass(milliseconds time) {
    for (const auto end = now_ + time; now_ < end;) {
      now_ += milliseconds(2500);
      pool_.release_idle(now_, seconds(10));
    }
  }

  CachingPool::Clock::time_point now_ = CachingPool::Clock::now();
  BoundedMemory* memory_ = new BoundedMemory;
  CachingPool pool_{Device{}, std::unique_ptr<SegmentSource>(memory_), exact_sizes()};
};

TEST_F(IdleMemoryTest, UnusedSegmentsAreReleasedAfterTenSeconds) {
  char* kept = allocate(30 * kMiB);
  free(allocate(100 * kMiB), 100 * kMiB);
  pass(seconds(10));
  EXPECT_EQ(memory_->taken, 130 * kMiB);
  pass(milliseconds(2500));
  EXPECT_EQ(memory_->taken, 30 * kMiB);
  EXPECT_EQ(kept[30 * kMiB - 1], 'x');
  free(kept, 30 * kMiB);
}

TEST_F(IdleMemoryTest, ReusedSegmentsStay) {
  for (int step = 0; step < 20; ++step) {
    char* p = allocate(100 * kMiB);
    free(allocate(300 << 10), 300 << 10);
    pass(milliseconds(2500));
    free(p, 100 * kMiB);
    pass(milliseconds(2500));
  }
  EXPECT_EQ(pool_.stats().system_allocations, 2u);
  EXPECT_EQ(memory_->discarded, 0u);
}

TEST_F(IdleMemoryTest, PagesBesideATensorAreReturned) {
  char* large = allocate(64 * kMiB);
  free(large, 64 * kMiB);
  char* tensor = allocate(2 * kMiB, 't');
  ASSERT_EQ(tensor, large) << "the test requires that the segment is reused";
  pass(seconds(15));
  EXPECT_EQ(memory_->taken, 64 * kMiB);
  EXPECT_EQ(memory_->discarded, 62 * kMiB);
  EXPECT_EQ(tensor[0], 't');
  EXPECT_EQ(tensor[2 * kMiB - 1], 't');
  char* const beside = tensor + 2 * kMiB + 4096;
  allow_access(beside, 1);
  EXPECT_EQ(*beside, 0);  // was 'x'
  forbid_access(beside, 1);
  pass(seconds(30));
  EXPECT_EQ(memory_->discarded, 62 * kMiB) << "the pages were returned again";
  free(tensor, 2 * kMiB);
  char* again = allocate(64 * kMiB, 'y');
  EXPECT_EQ(again, large);
  free(again, 64 * kMiB);
  pass(seconds(15));
  EXPECT_EQ(memory_->taken, 0u);
}

// Each small tensor that a size class keeps is in another segment.
TEST_F(IdleMemoryTest, CachedSmallBlocksKeepNoSegments) {
  std::vector<char*> large, small;
  for (int i = 0; i < 40; ++i) {
    large.push_back(allocate(kMiB - 4096));
    large.push_back(allocate(kMiB - 4096));
    small.push_back(allocate(4096));
  }
  ASSERT_GE(memory_->taken, 80 * kMiB);
  for (char* p : large) free(p, kMiB - 4096);
  for (char* p : small) free(p, 4096);
  pass(seconds(15));
  EXPECT_EQ(memory_->taken, 0u);
}

TEST_F(IdleMemoryTest, LittleFreeMemoryIsKept) {
  free(allocate(kMiB / 2), kMiB / 2);
  pass(seconds(30));
  EXPECT_EQ(memory_->taken, 2 * kMiB);
}

TEST_F(IdleMemoryTest, NothingIsKeptWhenTheHostIsShort) {
  free(allocate(100 * kMiB), 100 * kMiB);
  pool_.release_idle(now_, seconds(0));
  EXPECT_EQ(memory_->taken, 0u);
}

}  // namespace
}  // namespace tt
