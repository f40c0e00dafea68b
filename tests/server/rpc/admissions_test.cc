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
  ASSERT_TRUE(admissions.add(key_of('a'), 7, minutes(1), "alice").ok());
  ASSERT_TRUE(admissions.add(key_of('b'), 8, minutes(1), "alice").ok());
  EXPECT_TRUE(admissions.has(key_of('a')));
  EXPECT_TRUE(admissions.has(key_of('a')));
  EXPECT_EQ(admissions.take(key_of('a'))->session, 7u);
  EXPECT_FALSE(admissions.has(key_of('a')));
  EXPECT_FALSE(admissions.take(key_of('a')));
  EXPECT_EQ(admissions.take(key_of('b'))->session, 8u);
}

TEST(Admissions, RefuseOtherKeys) {
  Admissions admissions("alice");
  EXPECT_FALSE(admissions.add("short", 1, minutes(1), "alice").ok());
  ASSERT_TRUE(admissions.add(key_of('a'), 7, minutes(1), "alice").ok());
  for (const std::string& wrong : {std::string(), key_of('A'), key_of('a') + "a", key_of('a').substr(1)}) {
    EXPECT_FALSE(admissions.take(wrong)) << wrong;
  }
  EXPECT_EQ(admissions.size(), 1u);
  admissions.clear("bob");
  EXPECT_TRUE(admissions.has(key_of('a')));
  admissions.clear("alice");
  EXPECT_FALSE(admissions.take(key_of('a')));
}

TEST(Admissions, Expire) {
  Admissions admissions("alice");
  ASSERT_TRUE(admissions.add(key_of('a'), 7, milliseconds(1), "alice").ok());
  std::this_thread::sleep_for(milliseconds(2));
  EXPECT_FALSE(admissions.has(key_of('a')));
  EXPECT_FALSE(admissions.take(key_of('a')));
  EXPECT_EQ(admissions.size(), 0u);
}

TEST(Admissions, AreLimitedAndMakeRoomForThoseThatExpired) {
  Admissions admissions("alice");
  const auto numbered = [](size_t i) {
    const std::string number = std::to_string(i);
    return std::string(Admissions::kKeyBytes - number.size(), '0') + number;
  };
  for (size_t i = 0; i < Admissions::kMaxKeys; ++i) {
    ASSERT_TRUE(
        admissions.add(numbered(i), i + 1, i == 0 ? milliseconds(500) : milliseconds(minutes(1)), "alice").ok());
  }
  EXPECT_EQ(admissions.add(key_of('a'), 1, minutes(1), "alice").code(), absl::StatusCode::kResourceExhausted);
  while (admissions.has(numbered(0))) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_TRUE(admissions.add(key_of('a'), 1, minutes(1), "alice").ok());
}

TEST(Admissions, ChangeLimitsOfSessionsThatExist) {
  Admissions admissions("alice");
  const auto principal = [&] {
    EXPECT_TRUE(admissions.add(key_of('a'), 7, minutes(1), "alice").ok());
    return admissions.take(key_of('a'))->principal;
  };
  EXPECT_EQ(principal().quota, nullptr);
  QuotaLimits limits;
  limits.memory = 1000;
  ASSERT_TRUE(admissions.set_limits("alice", 3, &limits, 5, Share::Priority::kBatch).ok());
  const Principal before = principal();
  EXPECT_EQ(before.name, "alice");
  EXPECT_EQ(before.max_sessions, 3u);
  limits.memory = 2000;
  ASSERT_TRUE(admissions.set_limits("alice", 3, &limits, 6, Share::Priority::kInteractive).ok());
  EXPECT_EQ(before.quota->limits().memory, 2000u);
  EXPECT_EQ(before.share->weight(), 6u);
}

TEST(Admissions, OfAnEngineHaveTheirOwnPrincipals) {
  Admissions admissions;
  EXPECT_FALSE(admissions.is_worker());
  EXPECT_FALSE(admissions.knows("alice"));
  QuotaLimits limits;
  limits.memory = 1000;
  ASSERT_TRUE(admissions.set_limits("alice", 0, &limits, 1, Share::Priority::kInteractive).ok());
  ASSERT_TRUE(admissions.add(key_of('a'), 0, minutes(1), "alice").ok());
  ASSERT_TRUE(admissions.add(key_of('b'), 0, minutes(1), "bob").ok());
  EXPECT_TRUE(admissions.knows("alice"));
  EXPECT_TRUE(admissions.knows("bob"));
  const Principal bob = admissions.take(key_of('b'))->principal;
  EXPECT_EQ(bob.name, "bob");
  EXPECT_EQ(bob.quota, nullptr);
  EXPECT_EQ(admissions.take(key_of('a'))->principal.quota->limits().memory, 1000u);
}

TEST(Admissions, OfOnePrincipalDoNotKeepOutOthers) {
  Admissions admissions;
  for (size_t i = 0; i < Admissions::kMaxKeysOfPrincipal; ++i) {
    const std::string number = std::to_string(i);
    const std::string key = std::string(Admissions::kKeyBytes - number.size(), '0') + number;
    ASSERT_TRUE(admissions.add(key, 0, minutes(1), "alice").ok());
  }
  const absl::Status full = admissions.add(key_of('a'), 0, minutes(1), "alice");
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(full.message(), "expected at most 64 sessions being opened by alice");
  EXPECT_TRUE(admissions.add(key_of('a'), 0, minutes(1), "bob").ok());
}

TEST(Admissions, HaveALimitedNumberOfPrincipals) {
  Admissions admissions;
  for (size_t i = 0; i < Admissions::kMaxPrincipals; ++i) {
    ASSERT_TRUE(admissions.set_limits(std::to_string(i), 0, nullptr, 1, Share::Priority::kInteractive).ok());
  }
  EXPECT_EQ(admissions.add(key_of('a'), 0, minutes(1), "another").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(admissions.add(key_of('a'), 0, minutes(1), "7").ok());
}

}  // namespace
}  // namespace tt::server
