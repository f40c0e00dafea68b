// Admissions: keys that admit one session each.
#include "server/rpc/admissions.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace tt::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

std::string key_of(char digit) { return std::string(Admissions::kKeyBytes, digit); }

TEST(Admissions, AdmitEachKeyOnce) {
  Admissions admissions("alice");
  EXPECT_FALSE(admissions.has(key_of('a')));
  ASSERT_TRUE(admissions.add(key_of('a'), 7, minutes(1)).ok());
  ASSERT_TRUE(admissions.add(key_of('b'), 8, minutes(1)).ok());
  EXPECT_TRUE(admissions.has(key_of('a')));
  EXPECT_TRUE(admissions.has(key_of('a')));
  EXPECT_EQ(admissions.take(key_of('a')), 7u);
  EXPECT_FALSE(admissions.has(key_of('a')));
  EXPECT_EQ(admissions.take(key_of('a')), std::nullopt);
  EXPECT_EQ(admissions.take(key_of('b')), 8u);
}

TEST(Admissions, RefuseOtherKeys) {
  Admissions admissions("alice");
  EXPECT_FALSE(admissions.add("short", 1, minutes(1)).ok());
  ASSERT_TRUE(admissions.add(key_of('a'), 7, minutes(1)).ok());
  for (const std::string& wrong : {std::string(), key_of('A'), key_of('a') + "a", key_of('a').substr(1)}) {
    EXPECT_EQ(admissions.take(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(admissions.size(), 1u);
  admissions.clear();
  EXPECT_EQ(admissions.take(key_of('a')), std::nullopt);
}

TEST(Admissions, Expire) {
  Admissions admissions("alice");
  ASSERT_TRUE(admissions.add(key_of('a'), 7, milliseconds(1)).ok());
  std::this_thread::sleep_for(milliseconds(2));
  EXPECT_FALSE(admissions.has(key_of('a')));
  EXPECT_EQ(admissions.take(key_of('a')), std::nullopt);
  EXPECT_EQ(admissions.size(), 0u);
}

TEST(Admissions, AreLimitedAndMakeRoomForThoseThatExpired) {
  Admissions admissions("alice");
  const auto numbered = [](size_t i) {
    const std::string number = std::to_string(i);
    return std::string(Admissions::kKeyBytes - number.size(), '0') + number;
  };
  for (size_t i = 0; i < Admissions::kMaxKeys; ++i) {
    ASSERT_TRUE(admissions.add(numbered(i), i + 1, i == 0 ? milliseconds(500) : milliseconds(minutes(1))).ok());
  }
  EXPECT_EQ(admissions.add(key_of('a'), 1, minutes(1)).code(), absl::StatusCode::kResourceExhausted);
  while (admissions.has(numbered(0))) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_TRUE(admissions.add(key_of('a'), 1, minutes(1)).ok());
}

TEST(Admissions, ChangeLimitsOfSessionsThatExist) {
  Admissions admissions("alice");
  EXPECT_EQ(admissions.principal().quota, nullptr);
  QuotaLimits limits;
  limits.memory = 1000;
  admissions.set_limits(3, &limits, 5, Share::Priority::kBatch);
  const Principal before = admissions.principal();
  EXPECT_EQ(before.name, "alice");
  EXPECT_EQ(before.max_sessions, 3u);
  limits.memory = 2000;
  admissions.set_limits(3, &limits, 6, Share::Priority::kInteractive);
  EXPECT_EQ(before.quota->limits().memory, 2000u);
  EXPECT_EQ(before.share->weight(), 6u);
}

}  // namespace
}  // namespace tt::server
