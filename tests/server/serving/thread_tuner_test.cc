// How many threads runs use: the faster of both ways, which is found again when it changes. Times are given, not
// measured.
#include "server/serving/scheduler/thread_tuner.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace tt::server {
namespace {

using namespace std::chrono_literals;  // NOLINT
using Duration = ThreadTuner::Duration;

constexpr uint64_t kKey = 7;
constexpr int kComparison = static_cast<int>(ThreadTuner::kBlock * ThreadTuner::kBlocks);

// Runs whose times depend on the way. Returns how many of them used one thread.
int run(ThreadTuner* tuner, int runs, const std::function<Duration(bool one)>& time, uint64_t key = kKey) {
  int count = 0;
  for (int i = 0; i < runs; ++i) {
    const bool is_one = tuner->uses_one(key);
    tuner->add(key, is_one, time(is_one), 1);
    count += is_one ? 1 : 0;
  }
  return count;
}

int run(ThreadTuner* tuner, int runs, Duration several, Duration one, uint64_t key = kKey) {
  return run(
      tuner, runs, [=](bool is_one) { return is_one ? one : several; }, key);
}

// The choice after the first comparison.
bool chooses_one(const std::function<Duration(bool one)>& time) {
  ThreadTuner tuner(2);
  EXPECT_EQ(run(&tuner, kComparison, time), kComparison / 2);
  return tuner.uses_one(kKey);
}

TEST(ThreadTuner, UsesTheFasterWay) {
  ThreadTuner tuner(2);
  run(&tuner, 100, 300us, 140us);
  EXPECT_GE(run(&tuner, 640, 300us, 140us), 600);
  EXPECT_LE(run(&tuner, 100, 1200us, 1900us, 8), 20);  // of another size
  EXPECT_LE(run(&tuner, 640, 1200us, 1900us, 8), 30);
}

TEST(ThreadTuner, WaysThatTakeEquallyLongUseOneThread) {
  EXPECT_TRUE(chooses_one([](bool one) { return one ? 145us : 140us; }));
  EXPECT_TRUE(chooses_one([](bool one) { return one ? 140us : 145us; }));
  EXPECT_FALSE(chooses_one([](bool one) { return one ? 160us : 140us; }));
}

// Whatever the noise: several times the run's own time in every fourth run, or a tenth in all.
TEST(ThreadTuner, NoiseDoesNotDecide) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto noisy = [&](Duration time) {
      const auto tenth = Duration(static_cast<int64_t>(random() % static_cast<uint64_t>(time.count() / 10)));
      return random() % 4 == 0 ? time * 5 : time + tenth;
    };
    const auto faster_on_several = [&](bool one) { return noisy(one ? 1900us : 1200us); };
    const auto faster_on_one = [&](bool one) { return noisy(one ? 140us : 300us); };
    ThreadTuner several(2), one(2);
    run(&several, 20'000, faster_on_several);
    run(&one, 20'000, faster_on_one);
    EXPECT_LE(run(&several, 5'000, faster_on_several), 1'000) << seed;
    EXPECT_GE(run(&one, 5'000, faster_on_one), 4'000) << seed;
  }
}

// Two ways within a tenth of each other: the choice stays as it is, whatever the noise.
TEST(ThreadTuner, TheChoiceDoesNotAlternate) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const auto time = [&](bool one) { return (one ? 150us : 148us) + Duration(random() % 5'000); };
    ThreadTuner tuner(2);
    run(&tuner, kComparison, time);
    for (int i = 0; i < 100; ++i) {
      // Between comparisons, of which half the runs use several threads.
      EXPECT_GE(run(&tuner, 100, time), 100 - 2 * kComparison / 2 - 10) << seed;
    }
  }
}

TEST(ThreadTuner, OneComparisonDoesNotChangeTheChoice) {
  ThreadTuner tuner(2);
  run(&tuner, kComparison, 300us, 140us);
  const auto until_comparison = static_cast<int>(ThreadTuner::kFirstInterval);
  EXPECT_EQ(run(&tuner, until_comparison, 300us, 140us), until_comparison);
  EXPECT_EQ(run(&tuner, kComparison, 100us, 140us), kComparison / 2);  // says the opposite
  EXPECT_EQ(run(&tuner, kComparison, 300us, 140us), kComparison / 2);  // is repeated at once
  EXPECT_TRUE(tuner.uses_one(kKey));
  EXPECT_EQ(run(&tuner, 2 * until_comparison, 300us, 140us), 2 * until_comparison);
  EXPECT_EQ(run(&tuner, 2 * kComparison, 100us, 140us), kComparison);
  EXPECT_FALSE(tuner.uses_one(kKey));
}

TEST(ThreadTuner, FollowsTheLoad) {
  ThreadTuner tuner(2);
  run(&tuner, 20'000, 300us, 140us);
  run(&tuner, 1'200, 100us, 140us);  // the time of the choice is as it was: the next comparison finds it
  EXPECT_LE(run(&tuner, 640, 100us, 140us), 40);
}

TEST(ThreadTuner, AChangeOfTheLoadIsNoticedSoon) {
  ThreadTuner tuner(2);
  run(&tuner, 20'000, 1200us, 1900us);
  EXPECT_EQ(tuner.uses_one(kKey), false);
  run(&tuner, static_cast<int>(2 * ThreadTuner::kWindow) + 2 * kComparison, 3000us, 1950us);  // others use the cores
  EXPECT_EQ(tuner.uses_one(kKey), true);
}

TEST(ThreadTuner, TheFirstRunsOfAWayAreNotCounted) {
  int runs[2] = {0, 0};
  EXPECT_TRUE(chooses_one([&](bool one) { return runs[one ? 1 : 0]++ == 0 ? 1s : one ? 140us : 300us; }));
}

TEST(ThreadTuner, SlowFirstRunsDoNotDecide) {
  int several = 0;
  EXPECT_FALSE(chooses_one([&](bool one) { return one ? 1900us : several++ < 4 ? 4000us : 1200us; }));
}

TEST(ThreadTuner, LongRunsUseAllThreads) {
  ThreadTuner tuner(64);
  EXPECT_EQ(run(&tuner, 1000, 1ms, 1us), 0);  // may take 64 ms on one
  run(&tuner, 200, 100us, 1us);
  EXPECT_GE(run(&tuner, 100, 100us, 1us), 60);  // short ones may be tried
  ThreadTuner alone(1);
  EXPECT_EQ(run(&alone, 1000, 300us, 140us), 0);
}

TEST(ThreadTuner, KeysAreLimited) {
  ThreadTuner tuner(2);
  for (uint64_t key = 0; key < 10'000; ++key) tuner.add(key, tuner.uses_one(key), 300us, 1);
  run(&tuner, 100, 300us, 140us);
  EXPECT_GE(run(&tuner, 640, 300us, 140us), 600);
}

}  // namespace
}  // namespace tt::server
