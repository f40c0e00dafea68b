// How many threads runs use: the faster of both ways, which is found again when it changes.
#include "server/serving/scheduler/thread_tuner.h"

#include <gtest/gtest.h>

namespace tt::server {
namespace {

using namespace std::chrono_literals;  // NOLINT

constexpr uint64_t kKey = 7;

// Runs that take these times on several threads and on one. Returns how many of them used one.
int run(ThreadTuner* tuner, int runs, ThreadTuner::Duration several, ThreadTuner::Duration one, uint64_t key = kKey) {
  int count = 0;
  for (int i = 0; i < runs; ++i) {
    const bool is_one = tuner->uses_one(key);
    tuner->add(key, is_one, is_one ? one : several, 1);
    count += is_one ? 1 : 0;
  }
  return count;
}

TEST(ThreadTuner, UsesTheFasterWay) {
  ThreadTuner tuner(2);
  run(&tuner, 100, 300us, 140us);
  EXPECT_GE(run(&tuner, 640, 300us, 140us), 620);
  EXPECT_LE(run(&tuner, 100, 1200us, 1900us, 8), 10);  // of another size
  EXPECT_LE(run(&tuner, 640, 1200us, 1900us, 8), 20);
}

TEST(ThreadTuner, FollowsTheLoad) {
  ThreadTuner tuner(2);
  run(&tuner, 200, 300us, 140us);
  run(&tuner, 2000, 100us, 140us);
  EXPECT_LE(run(&tuner, 640, 100us, 140us), 20);
}

TEST(ThreadTuner, OneInterruptedRunDoesNotDecide) {
  ThreadTuner tuner(2);
  run(&tuner, 100, 300us, 140us);
  tuner.add(kKey, true, 50ms, 1);
  EXPECT_GE(run(&tuner, 60, 300us, 140us), 58);
}

TEST(ThreadTuner, TheFirstRunsOfAWayAreNotCounted) {
  ThreadTuner tuner(2);
  int runs[2] = {0, 0};
  for (int i = 0; i < 100; ++i) {
    const bool one = tuner.uses_one(kKey);
    tuner.add(kKey, one, runs[one ? 1 : 0]++ == 0 ? 1s : one ? 140us : 300us, 1);
  }
  EXPECT_GE(run(&tuner, 60, 300us, 140us), 58);
}

TEST(ThreadTuner, TheLeastOfTheTrialsCounts) {
  ThreadTuner tuner(2);
  int several = 0;
  for (int i = 0; i < 8; ++i) {
    const bool one = tuner.uses_one(kKey);
    tuner.add(kKey, one, one ? 1900us : several++ < 2 ? 4000us : 1200us, 1);
  }
  EXPECT_LE(run(&tuner, 64, 1200us, 1900us), 2);
}

TEST(ThreadTuner, LongRunsUseAllThreads) {
  ThreadTuner tuner(64);
  EXPECT_EQ(run(&tuner, 1000, 1ms, 1us), 0);  // may take 64 ms on one
  ThreadTuner alone(1);
  EXPECT_EQ(run(&alone, 1000, 300us, 140us), 0);
}

TEST(ThreadTuner, KeysAreLimited) {
  ThreadTuner tuner(2);
  for (uint64_t key = 0; key < 10'000; ++key) tuner.add(key, tuner.uses_one(key), 300us, 1);
  run(&tuner, 100, 300us, 140us);
  EXPECT_GE(run(&tuner, 640, 300us, 140us), 620);
}

}  // namespace
}  // namespace tt::server
