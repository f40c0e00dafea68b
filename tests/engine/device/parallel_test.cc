#include "engine/device/parallel.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

#include "engine/device/cancellation.h"

namespace tt {
namespace {

struct ParallelTest : testing::Test {
  ParallelTest() { set_num_threads(4); }
  ~ParallelTest() override { set_num_threads(before_); }
  int before_ = num_threads();
};

TEST_F(ParallelTest, EveryIndexRunsOnce) {
  for (int64_t n : {0, 1, 7, 1000, 100003}) {
    std::vector<int> counts(static_cast<size_t>(n));
    parallel_for(n, 10, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++counts[static_cast<size_t>(i)];
    });
    EXPECT_EQ(counts, std::vector<int>(static_cast<size_t>(n), 1)) << n;
  }
}

TEST_F(ParallelTest, BlocksHaveAtLeastGrainSize) {
  std::atomic<int64_t> smallest{1 << 20}, pieces{0};
  parallel_for(100, 40, [&](int64_t begin, int64_t end) {
    ++pieces;
    int64_t seen = smallest;
    while (end - begin < seen && !smallest.compare_exchange_weak(seen, end - begin)) {
    }
  });
  EXPECT_EQ(pieces, 2);
  EXPECT_GE(smallest, 40);
}

TEST_F(ParallelTest, NestedLoopRunsOnOneThread) {
  std::atomic<int64_t> sum{0};
  parallel_for(8, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      auto self = std::this_thread::get_id();
      parallel_for(100, 1, [&](int64_t b, int64_t e) {
        EXPECT_EQ(std::this_thread::get_id(), self);
        sum += e - b;
      });
    }
  });
  EXPECT_EQ(sum, 800);
}

TEST_F(ParallelTest, OneCallerUsesPoolAtATime) {
  PoolLease mine;
  EXPECT_EQ(mine.width(), 4);
  std::thread([] {
    PoolLease other;
    EXPECT_EQ(other.width(), 1);
    int pieces = 0;  // not synchronised, because only one thread runs
    parallel_for(1000, 1, [&](int64_t, int64_t) { ++pieces; });
    EXPECT_EQ(pieces, 1);
  }).join();
  PoolLease again;  // nested leases on one thread are allowed
  EXPECT_EQ(again.width(), 4);
}

TEST_F(ParallelTest, LeaseOfOneThreadLeavesPoolToOthers) {
  const int before = omp_get_max_threads();
  {
    PoolLease alone(1);
    EXPECT_EQ(alone.width(), 1);
    EXPECT_EQ(omp_get_max_threads(), 1);
    std::thread([] { EXPECT_EQ(PoolLease().width(), 4); }).join();
    {
      PoolLease inside;
      EXPECT_EQ(inside.width(), 4);
    }
    EXPECT_EQ(omp_get_max_threads(), 1);
  }
  EXPECT_EQ(omp_get_max_threads(), before);
}

TEST_F(ParallelTest, PoolIsFreeAfterLease) {
  { PoolLease lease; }
  std::thread([] { EXPECT_EQ(PoolLease().width(), 4); }).join();
}

TEST_F(ParallelTest, ThreadLimitAppliesToTheCallingThread) {
  EXPECT_EQ(set_thread_limit(3), 0);
  EXPECT_EQ(num_threads(), 3);
  EXPECT_EQ(PoolLease().width(), 3);
  std::thread([] { EXPECT_EQ(PoolLease().width(), 4); }).join();
  EXPECT_EQ(set_thread_limit(100), 3);
  EXPECT_EQ(num_threads(), 4);
  EXPECT_EQ(set_thread_limit(0), 100);
  EXPECT_EQ(num_threads(), 4);
}

TEST_F(ParallelTest, ConcurrentCallersFinish) {
  std::latch start(4);
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      start.arrive_and_wait();
      for (int i = 0; i < 50; ++i) {
        std::vector<int64_t> values(10000);
        parallel_for(10000, 100, [&](int64_t begin, int64_t end) {
          std::iota(values.begin() + begin, values.begin() + end, begin);
        });
        ASSERT_EQ(std::accumulate(values.begin(), values.end(), int64_t{0}), 49995000);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST_F(ParallelTest, ExceptionReachesCaller) {
  for (int threads : {1, 4}) {
    set_num_threads(threads);
    auto fails = [](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) check(ErrorKind::kValue, i != 700, "no ", i);
    };
    EXPECT_THROW(parallel_for(1000, 1, fails), Error);
    EXPECT_THROW(parallel_for(1000, 1, [](int64_t, int64_t) { throw std::bad_alloc(); }), std::bad_alloc);
    std::atomic<int64_t> sum{0};
    parallel_for(1000, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum, 1000);
  }
}

TEST_F(ParallelTest, CancelledLoopStopsBetweenBlocks) {
  for (int threads : {1, 4}) {
    set_num_threads(threads);
    Cancellation cancellation;
    const CancellationScope scope(&cancellation);
    std::atomic<int64_t> done{0};
    auto body = [&](int64_t begin, int64_t end) {
      EXPECT_EQ(Cancellation::current(), &cancellation);  // also on the pool's threads
      if ((done += end - begin) > 1000) cancellation.request(CancelReason::kClient);
    };
    EXPECT_THROW(parallel_for(1'000'000, 1, body), Cancelled);
    EXPECT_LT(done, 1'000'000);
    EXPECT_THROW(parallel_for(10, 1, [&](int64_t, int64_t) { ADD_FAILURE() << "the body must not run"; }), Cancelled);
    cancellation.reset();
    done = 0;
    parallel_for(1000, 1, [&](int64_t begin, int64_t end) { done += end - begin; });
    EXPECT_EQ(done, 1000);
  }
  EXPECT_EQ(Cancellation::current(), nullptr);
}

TEST_F(ParallelTest, BlocksCoverEveryIndexOnce) {
  Cancellation cancellation;
  const CancellationScope scope(&cancellation);
  for (int64_t n : {1, 100, 100'003, 3'000'000}) {
    for (int64_t grain : {1, 7, 1000}) {
      std::vector<std::atomic<uint8_t>> counts(static_cast<size_t>(n));
      parallel_for(n, grain, [&](int64_t begin, int64_t end) {
        EXPECT_TRUE(end - begin >= grain || end - begin == n);
        for (int64_t i = begin; i < end; ++i) ++counts[static_cast<size_t>(i)];
      });
      EXPECT_TRUE(std::all_of(counts.begin(), counts.end(), [](const auto& c) { return c == 1; })) << n << " " << grain;
    }
  }
}

TEST(CancellationTest, EndedSessionStaysCancelled) {
  Cancellation cancellation;
  cancellation.request(CancelReason::kTimeLimit);
  cancellation.request(CancelReason::kClient);
  EXPECT_EQ(cancellation.reason(), CancelReason::kTimeLimit);  // the first reason is kept
  cancellation.reset();
  EXPECT_FALSE(cancellation.requested());
  cancellation.request(CancelReason::kClient);
  cancellation.request(CancelReason::kEnded);
  cancellation.reset();
  EXPECT_EQ(cancellation.reason(), CancelReason::kEnded);
}

}  // namespace
}  // namespace tt
