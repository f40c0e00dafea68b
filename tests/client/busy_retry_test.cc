// BusyRetry: which refusals are repeated, and for how long.
#include "client/connection/busy_retry.h"

#include <gtest/gtest.h>

namespace tt::client {
namespace {

using std::chrono::milliseconds;

TEST(BusyRetryTest, RecognisesRefusalsThatMaySucceedLater) {
  EXPECT_TRUE(BusyRetry::is_busy(true, "a has 45 Hello calls in progress; try again later"));
  EXPECT_FALSE(BusyRetry::is_busy(true, "failed to connect to all addresses"));
  EXPECT_FALSE(BusyRetry::is_busy(false, "the model's queue is full; try again later"));
}

TEST(BusyRetryTest, PausesUntilTheTimeout) {
  const auto begin = std::chrono::steady_clock::now();
  BusyRetry retry(milliseconds(200));
  int attempts = 0;
  while (retry.pause()) ++attempts;
  EXPECT_GE(attempts, 2);  // pauses double from 20 ms
  EXPECT_LE(attempts, 5);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(200));
  EXPECT_GE(retry.left(), milliseconds(1));
}

}  // namespace
}  // namespace tt::client
