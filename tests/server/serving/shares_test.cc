// What callers and models may have in progress: bytes of answers, and places.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/serving/inflight.h"
#include "server/serving/model_shares.h"

namespace tt::server {
namespace {

TEST(InflightBytes, AreLimitedTogether) {
  const auto bytes = std::make_shared<InflightBytes>(1000);
  auto first = bytes->begin(900);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(bytes->begin(101).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(bytes->begin(100).ok());
  first->shrink(200);
  EXPECT_TRUE(bytes->begin(800).ok());
  first->shrink(500);  // more than it has
  EXPECT_TRUE(bytes->begin(800).ok());
  *first = Inflight();
  EXPECT_TRUE(bytes->begin(1000).ok());
}

TEST(InflightBytes, ACallerHasHalf) {
  const auto bytes = std::make_shared<InflightBytes>(1000);
  {
    auto a = bytes->begin(300, "a"), b = bytes->begin(300, "b");
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(bytes->begin(201, "a").status().code(), absl::StatusCode::kResourceExhausted);
    auto more = bytes->begin(200, "a");
    EXPECT_TRUE(more.ok());
    EXPECT_FALSE(bytes->begin(1, "a").ok());
    EXPECT_TRUE(bytes->begin(200, "b").ok());
    EXPECT_TRUE(bytes->begin(200).ok());  // a request
    more->shrink(0);
    EXPECT_TRUE(bytes->begin(200, "a").ok());
    Inflight moved = *std::move(a);
    EXPECT_FALSE(bytes->begin(201, "a").ok());
    moved = Inflight();
    EXPECT_TRUE(bytes->begin(500, "a").ok());
  }
  EXPECT_TRUE(bytes->begin(900, "a").ok());                                           // one answer, if there is room
  EXPECT_EQ(bytes->begin(1001, "a").status().code(), absl::StatusCode::kOutOfRange);  // it never has room
  EXPECT_EQ(bytes->begin(1001).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(bytes->begin(1000).ok());  // nothing is left of those that were refused
}

TEST(InflightBytes, ACallerHasAShareForRequests) {
  const auto bytes = std::make_shared<InflightBytes>(1000);
  const auto request = [&](uint64_t size, const char* caller) {
    return bytes->begin(size, caller, InflightUse::kRequest);
  };
  auto waiting = request(400, "a");
  ASSERT_TRUE(waiting.ok());
  const absl::Status refused = request(101, "a").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("in progress or not read"), std::string::npos);
  EXPECT_TRUE(request(500, "b").ok());
  auto answer = bytes->begin(300, "a");  // answers have their own share, and both together three quarters
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(bytes->begin(60, "a").ok());
  EXPECT_FALSE(request(60, "a").ok());
  EXPECT_TRUE(bytes->begin(50, "a").ok());
  *waiting = Inflight();
  EXPECT_TRUE(bytes->begin(200, "a").ok());
  EXPECT_TRUE(request(450, "a").ok());
  *answer = Inflight();
  EXPECT_TRUE(request(1000, "a").ok());  // a single one
}

TEST(InflightBytes, ALargeAnswerHasAChanceBesideSmallOnes) {
  const auto bytes = std::make_shared<InflightBytes>(1000);
  auto small = bytes->begin(100, "a");
  ASSERT_TRUE(small.ok());
  const auto large = bytes->begin(600, "a");
  ASSERT_TRUE(large.ok());
  EXPECT_FALSE(bytes->begin(100, "a").ok());
  EXPECT_TRUE(bytes->begin(300, "b").ok());
  *small = Inflight();
  EXPECT_FALSE(bytes->begin(300, "a").ok());
}

TEST(InflightBytes, MayOutliveTheServer) {
  auto bytes = std::make_shared<InflightBytes>(1000);
  auto inflight = bytes->begin(10, "a");
  bytes = nullptr;
  *inflight = Inflight();
}

// Places that a model gets.
size_t fill(ModelShares* shares, const std::string& model, const std::string& address,
            std::vector<ModelShares::Place>* held) {
  size_t count = 0;
  for (;; ++count) {
    absl::StatusOr<ModelShares::Place> place = shares->enter(model, address);
    if (!place.ok()) {
      EXPECT_EQ(place.status().code(), absl::StatusCode::kUnavailable);
      return count;
    }
    held->push_back(*std::move(place));
  }
}

TEST(ModelShares, OneModelLeavesPlacesToOthers) {
  const auto shares = std::make_shared<ModelShares>(64, 64);
  std::vector<ModelShares::Place> held;
  EXPECT_EQ(fill(shares.get(), "a", "x", &held), 48u);
  EXPECT_EQ(fill(shares.get(), "b", "y", &held), 12u);
  EXPECT_EQ(fill(shares.get(), "a", "x", &held), 0u);
  EXPECT_EQ(fill(shares.get(), "a", "z", &held), 1u);  // the last four are for callers without requests
  EXPECT_EQ(fill(shares.get(), "b", "v", &held), 1u);
  EXPECT_EQ(fill(shares.get(), "c", "x", &held), 0u);
  held.clear();
  EXPECT_EQ(fill(shares.get(), "b", "y", &held), 48u);
}

TEST(ModelShares, ACallerHasItsPlaces) {
  const auto shares = std::make_shared<ModelShares>(64, 32);
  std::vector<ModelShares::Place> held;
  EXPECT_EQ(fill(shares.get(), "a", "x", &held), 24u);
  EXPECT_EQ(fill(shares.get(), "a", "y", &held), 24u);
  EXPECT_EQ(fill(shares.get(), "a", "z", &held), 1u);  // the model's share of all, but for a caller's first request
  EXPECT_EQ(fill(shares.get(), "b", "x", &held), 6u);
  EXPECT_GT(fill(shares.get(), "b", "z", &held), 0u);
}

TEST(ModelShares, SlowModelsLeaveTheFirstPlaceOfOthers) {
  const auto shares = std::make_shared<ModelShares>(512, 256);
  std::vector<ModelShares::Place> held;
  size_t all = 0;
  for (const char* model : {"a", "b", "c"}) all += fill(shares.get(), model, "x", &held);
  EXPECT_EQ(all, 256u - 8u);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(fill(shares.get(), std::to_string(i), "x", &held), 1u);
  EXPECT_EQ(fill(shares.get(), "more", "x", &held), 0u);
}

TEST(ModelShares, StreamsHaveAShare) {
  const auto shares = std::make_shared<ModelShares>(64, 64);
  std::vector<ModelShares::Place> held;
  EXPECT_EQ(fill(shares.get(), "", "x", &held), 48u);
  EXPECT_NE(shares->enter("", "x").status().message().find("48 streams"), std::string::npos);
  EXPECT_EQ(fill(shares.get(), "a", "y", &held), 12u);
}

TEST(ModelShares, APlaceMayOutliveTheServer) {
  auto shares = std::make_shared<ModelShares>(4, 4);
  ModelShares::Place place;
  place = *shares->enter("a", "x");
  EXPECT_EQ(shares->enter("b", "x").ok(), true);
  shares = nullptr;
}

}  // namespace
}  // namespace tt::server
