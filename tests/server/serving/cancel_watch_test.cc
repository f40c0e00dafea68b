// CancelWatch: which work is cancelled, and when.
#include "server/serving/cancel_watch.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/server/wait_until.h"

namespace tt::server {
namespace {

TEST(CancelWatchTest, CancelsWorkThatIsNotWanted) {
  CancelWatch watch;
  std::atomic<bool> is_wanted = true;
  Cancellation wanted, other;
  const CancelWatch::Work first(watch, wanted, [] { return CancelReason::kNone; });
  {
    const CancelWatch::Work second(watch, other,
                                   [&] { return is_wanted ? CancelReason::kNone : CancelReason::kClient; });
    std::this_thread::sleep_for(3 * CancelWatch::kInterval);
    EXPECT_FALSE(other.requested());
    is_wanted = false;
    EXPECT_TRUE(testing::wait_until([&] { return other.requested(); }));
  }
  EXPECT_EQ(other.reason(), CancelReason::kClient);
  EXPECT_FALSE(wanted.requested());
}

TEST(CancelWatchTest, WakesUpForLaterWork) {
  CancelWatch watch;
  std::this_thread::sleep_for(30 * CancelWatch::kInterval);  // the thread sleeps
  for (int i = 0; i < 2; ++i) {
    Cancellation cancellation;
    const CancelWatch::Work work(watch, cancellation, [] { return CancelReason::kTimeLimit; });
    EXPECT_TRUE(testing::wait_until([&] { return cancellation.requested(); }));
  }
}

}  // namespace
}  // namespace tt::server
