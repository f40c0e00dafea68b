// InFlightLimit on a simulated link, in virtual time.
#include "client/link/in_flight_limit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

namespace tt::client {
namespace {

using Clock = InFlightLimit::Clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

struct Usage {
  Clock::duration idle{};  // time that the engine was idle after the first frames
  Clock::duration total{};
  uint64_t max_frames = 0;
};

// A client that always has a frame to send, `round_trip` away from an engine that executes a frame in execution(). The
// first eighth of the frames is not counted.
template <typename Execution>
Usage simulate(Clock::duration round_trip, int count, Execution execution) {
  InFlightLimit limit;
  limit.connected(round_trip);
  Clock::time_point now, engine_free;
  std::deque<Clock::time_point> acknowledgements;  // arrival times for the frames in flight
  Usage usage;
  Clock::time_point counted_from;
  for (int sent = 1; sent <= count; ++sent) {
    const auto acknowledge_one = [&] {
      limit.acknowledged(static_cast<uint64_t>(sent) - acknowledgements.size(), now);
      acknowledgements.pop_front();
    };
    while (!acknowledgements.empty() && acknowledgements.front() <= now) acknowledge_one();
    while (acknowledgements.size() >= limit.frames()) {
      now = std::max(now, acknowledgements.front());
      acknowledge_one();
    }
    limit.sent(static_cast<uint64_t>(sent), now);
    const Clock::time_point arrival = now + round_trip / 2, start = std::max(arrival, engine_free);
    if (sent == count / 8) counted_from = start;
    if (sent > count / 8) usage.idle += start - engine_free;
    engine_free = start + execution();
    acknowledgements.push_back(engine_free + round_trip / 2);
    usage.max_frames = std::max<uint64_t>(usage.max_frames, acknowledgements.size());
  }
  usage.total = engine_free - counted_from;
  return usage;
}

TEST(InFlightLimitTest, EngineIsNeverIdleAndQueueIsBounded) {
  for (Clock::duration round_trip : {milliseconds(1), milliseconds(20), milliseconds(100), milliseconds(200)}) {
    for (Clock::duration execution : {microseconds(500), microseconds(1400), microseconds(40'000)}) {
      SCOPED_TRACE(testing::Message() << round_trip / microseconds(1) << " us, " << execution / microseconds(1));
      const Usage usage = simulate(round_trip, 20'000, [&] { return execution; });
      EXPECT_EQ(usage.idle, Clock::duration());
      const uint64_t needed = static_cast<uint64_t>(round_trip / execution) + 1;
      EXPECT_LE(usage.max_frames, InFlightLimit::kGain * needed + InFlightLimit::kBase);
    }
  }
}

TEST(InFlightLimitTest, FollowsIrregularExecution) {
  std::mt19937 random(1);
  for (Clock::duration round_trip : {milliseconds(20), milliseconds(100)}) {
    std::uniform_int_distribution<int> microseconds_per_frame(500, 5000);
    const Usage usage = simulate(round_trip, 20'000, [&] { return microseconds(microseconds_per_frame(random)); });
    EXPECT_LT(usage.idle, usage.total / 100);
    EXPECT_LE(usage.max_frames, InFlightLimit::kMax);
  }
}

TEST(InFlightLimitTest, LocalLinkKeepsTwoFrames) {
  const Usage usage = simulate(microseconds(80), 1000, [&] { return microseconds(700); });
  EXPECT_EQ(usage.max_frames, InFlightLimit::kBase);
}

// The time that frames wait in the engine's queue is not counted as round trip time.
TEST(InFlightLimitTest, OwnQueueDoesNotRaiseTheLimit) {
  const Usage usage = simulate(milliseconds(2), 1000, [&] { return milliseconds(50); });
  EXPECT_LE(usage.max_frames, InFlightLimit::kBase);
}

TEST(InFlightLimitTest, NewConnectionStartsAgain) {
  InFlightLimit limit;
  Clock::time_point now;
  limit.connected(milliseconds(100));
  for (uint64_t i = 1; i < 100; ++i) {
    limit.sent(i, now);
    limit.acknowledged(i, now + milliseconds(100));
    now += milliseconds(1);
  }
  EXPECT_GT(limit.frames(), InFlightLimit::kBase);
  limit.connected(microseconds(100));
  EXPECT_EQ(limit.frames(), InFlightLimit::kBase);
  EXPECT_EQ(limit.round_trip(), microseconds(100));
}

}  // namespace
}  // namespace tt::client
