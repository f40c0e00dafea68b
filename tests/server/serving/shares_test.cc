// What callers and models may have in progress: bytes of answers, and places.
#include <gtest/gtest.h>

#include <memory>
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
  EXPECT_TRUE(bytes->begin(900, "a").ok());  // one answer, if there is room
  EXPECT_FALSE(bytes->begin(1001, "a").ok());
  EXPECT_TRUE(bytes->begin(1000).ok());  // nothing is left of those that were refused
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
  ModelShares shares(64, 64);
  std::vector<ModelShares::Place> held;
  EXPECT_EQ(fill(&shares, "a", "x", &held), 48u);
  EXPECT_EQ(fill(&shares, "b", "x", &held), 12u);
  EXPECT_EQ(fill(&shares, "c", "x", &held), 3u);
  EXPECT_EQ(fill(&shares, "d", "x", &held), 1u);
  EXPECT_EQ(fill(&shares, "e", "x", &held), 0u);
  EXPECT_EQ(fill(&shares, "a", "x", &held), 0u);
  held.clear();
  EXPECT_EQ(fill(&shares, "b", "y", &held), 48u);
}

TEST(ModelShares, AnAddressHasItsPlaces) {
  ModelShares shares(64, 32);
  std::vector<ModelShares::Place> held;
  EXPECT_EQ(fill(&shares, "a", "x", &held), 24u);
  EXPECT_EQ(fill(&shares, "a", "y", &held), 24u);
  EXPECT_EQ(fill(&shares, "a", "z", &held), 0u);  // its share of all
  EXPECT_EQ(fill(&shares, "b", "x", &held), 6u);
  EXPECT_GT(fill(&shares, "b", "z", &held), 0u);
  held.clear();
  EXPECT_EQ(fill(&shares, "a", "unix", &held), 48u);  // clients on unix sockets have one address
}

}  // namespace
}  // namespace tt::server
