// A quota limits what several accounts hold together.
#include "engine/memory/quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "engine/memory/account.h"

namespace tt {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr Device kCPU{}, kFirst{DeviceType::kCUDA, 0}, kSecond{DeviceType::kCUDA, 1};

std::unique_ptr<Account> make(const std::shared_ptr<Quota>& quota, uint64_t limit = 0) {
  return std::make_unique<Account>("session 1", limit, Account::DescribeSite(), Account::new_tenant(), quota);
}

TEST(QuotaTest, LimitsTheAccountsTogether) {
  const auto quota = std::make_shared<Quota>("alice", QuotaLimits{.memory = 10 * kMiB});
  const auto a = make(quota), b = make(quota, 4 * kMiB);
  EXPECT_TRUE(a->charge(7 * kMiB, kFirst));
  EXPECT_FALSE(b->charge(4 * kMiB));
  EXPECT_THAT(b->refusal(4 * kMiB), HasSubstr("the sessions of alice hold 7 MiB of their limit of 10 MiB"));
  EXPECT_TRUE(b->charge(3 * kMiB));
  EXPECT_FALSE(b->charge(2 * kMiB));
  EXPECT_THAT(b->refusal(2 * kMiB), HasSubstr("session 1 holds 3 MiB of its 4 MiB limit"));
  EXPECT_EQ(quota->held(), 10 * kMiB);
  a->refund(7 * kMiB, kFirst);
  EXPECT_EQ(quota->held(), 3 * kMiB);
  EXPECT_TRUE(b->charge(kMiB));
}

TEST(QuotaTest, ChargesItsParents) {
  const auto models = std::make_shared<Quota>("models", QuotaLimits{.memory = 8 * kMiB});
  const auto alice = std::make_shared<Quota>("alice", QuotaLimits{.memory = 6 * kMiB, .host_memory = 5 * kMiB});
  const auto own = std::make_shared<Quota>("alice", QuotaLimits{}, std::vector<std::shared_ptr<Quota>>{models, alice});
  const auto session = make(alice), model = make(own), other = make(models);
  EXPECT_TRUE(session->charge(2 * kMiB, kFirst));
  EXPECT_TRUE(model->charge(3 * kMiB, kFirst));
  EXPECT_EQ(models->held(kFirst), 3 * kMiB);
  EXPECT_EQ(alice->held(), 5 * kMiB);
  EXPECT_FALSE(model->charge(2 * kMiB)) << "alice has room for 1 MiB";
  EXPECT_THAT(model->refusal(2 * kMiB), HasSubstr("the sessions of alice hold 5 MiB of their limit of 6 MiB"));
  EXPECT_EQ(models->held(), 3 * kMiB) << "nothing stays charged";
  EXPECT_TRUE(other->charge(5 * kMiB));
  EXPECT_FALSE(model->charge(kMiB)) << "all models have no room";
  EXPECT_EQ(alice->held(), 5 * kMiB);
  EXPECT_TRUE(model->move(3 * kMiB, kFirst, kCPU));
  EXPECT_EQ(models->held(kCPU), 8 * kMiB);
  EXPECT_EQ(alice->held(kCPU), 3 * kMiB);
  model->refund(3 * kMiB);
  EXPECT_EQ(models->held(), 5 * kMiB);
  EXPECT_EQ(alice->held(), 2 * kMiB);
}

TEST(QuotaTest, LimitsDevicesSeparately) {
  const auto quota = std::make_shared<Quota>("alice", QuotaLimits{.host_memory = 2 * kMiB, .gpu_memory = 3 * kMiB});
  const auto a = make(quota);
  EXPECT_TRUE(a->charge(3 * kMiB, kFirst));
  EXPECT_TRUE(a->charge(3 * kMiB, kSecond));
  EXPECT_TRUE(a->charge(2 * kMiB, kCPU));
  EXPECT_FALSE(a->charge(1, kSecond));
  EXPECT_THAT(a->refusal(1, kSecond), HasSubstr("alice hold 3 MiB of their limit of 3 MiB on each GPU"));
  EXPECT_FALSE(a->charge(1, kCPU));
  EXPECT_THAT(a->refusal(1, kCPU), HasSubstr("alice hold 2 MiB of their limit of 2 MiB on the host"));
  EXPECT_EQ(quota->held(kFirst), 3 * kMiB);
  EXPECT_EQ(quota->held(kCPU), 2 * kMiB);
}

TEST(QuotaTest, ChargesMoveBetweenDevices) {
  const auto quota = std::make_shared<Quota>(
      "alice", QuotaLimits{.memory = 5 * kMiB, .host_memory = 2 * kMiB, .gpu_memory = 4 * kMiB});
  const auto a = make(quota, 5 * kMiB);
  EXPECT_TRUE(a->charge(4 * kMiB, kFirst));
  EXPECT_FALSE(a->move(3 * kMiB, kFirst, kCPU)) << "the host has room for 2 MiB";
  EXPECT_EQ(quota->held(kFirst), 4 * kMiB);
  EXPECT_EQ(quota->held(kCPU), 0u);
  EXPECT_EQ(a->held(kFirst), 4 * kMiB);
  EXPECT_TRUE(a->move(2 * kMiB, kFirst, kCPU)) << "what is held on all devices stays the same";
  EXPECT_EQ(quota->held(kFirst), 2 * kMiB);
  EXPECT_EQ(quota->held(kCPU), 2 * kMiB);
  EXPECT_EQ(a->held(kFirst), 2 * kMiB);
  EXPECT_EQ(a->held(), 4 * kMiB);
  EXPECT_EQ(quota->held(), 4 * kMiB);
  EXPECT_TRUE(a->charge(kMiB, kFirst));
  quota->set_limits({.gpu_memory = 4 * kMiB});
  EXPECT_FALSE(a->move(2 * kMiB, kCPU, kFirst));
  EXPECT_TRUE(a->move(2 * kMiB, kCPU, kFirst, /*is_limited=*/false));
  EXPECT_EQ(a->held(kFirst), 5 * kMiB);
  EXPECT_EQ(quota->held(kCPU), 0u);
  a->refund(5 * kMiB, kFirst);
  EXPECT_EQ(quota->held(), 0u);
  EXPECT_EQ(a->held(), 0u);
}

TEST(QuotaTest, ChangedLimitsKeepWhatIsHeld) {
  const auto quota = std::make_shared<Quota>("alice");
  const auto a = make(quota);
  EXPECT_TRUE(a->charge(8 * kMiB));
  quota->set_limits({.memory = 4 * kMiB});
  EXPECT_FALSE(a->charge(1));
  EXPECT_FALSE(a->is_overdrawn());
  EXPECT_TRUE(a->has_host_room(Account::kHostAllowance));  // is not counted
  EXPECT_FALSE(a->has_host_room(Account::kHostAllowance + 1));
  a->refund(6 * kMiB);
  EXPECT_TRUE(a->charge(2 * kMiB));
  EXPECT_EQ(quota->limits().memory, 4 * kMiB);
}

TEST(QuotaTest, CountsBookkeepingAboveOneAllowance) {
  const auto quota = std::make_shared<Quota>("alice", QuotaLimits{.memory = 4 * kMiB});
  {
    const auto a = make(quota), b = make(quota);
    a->charge_host(Account::kHostAllowance);
    EXPECT_EQ(quota->bookkeeping(), 0u);
    b->charge_host(3 * kMiB);
    EXPECT_EQ(quota->bookkeeping(), 3 * kMiB);
    EXPECT_FALSE(b->charge(2 * kMiB));
    EXPECT_TRUE(b->charge(kMiB));
    EXPECT_FALSE(b->has_host_room(kMiB));
    EXPECT_THAT(b->bookkeeping_refusal(kMiB), HasSubstr("the sessions of alice hold 4 MiB of their limit"));
    a->set_program(0);  // reports: the room was that before the others' growth
    EXPECT_EQ(a->host_room(), 0u);
    b->refund(kMiB);
  }
  EXPECT_EQ(quota->bookkeeping(), 0u);
  EXPECT_EQ(quota->held(), 0u);
}

TEST(QuotaTest, DividesTheOverdraftAmongAccounts) {
  const auto quota = std::make_shared<Quota>("alice", QuotaLimits{.memory = kMiB});
  const auto full = make(quota);
  full->charge_host(Account::kHostAllowance + kMiB);
  std::vector<std::shared_ptr<Account>> others;
  uint64_t overdraft = 0;
  for (int i = 0; i < 64; ++i) {
    others.push_back(make(quota));
    others.back()->set_program(0);
  }
  for (const auto& each : others) {
    for (; !each->is_overdrawn(); overdraft += 4 << 10) each->charge_host(4 << 10);
  }
  EXPECT_LE(overdraft, 64 * (Quota::kMinOverdraft + (8 << 10)));
  others.clear();
  full->refund_host(kMiB);
  full->set_program(0);
  const auto next = make(quota);
  full->charge_host(kMiB);
  next->set_program(0);
  next->charge_host(kMiB);
  EXPECT_FALSE(next->is_overdrawn()) << "accounts that have ended need no overdraft";
}

TEST(QuotaTest, LimitsTheBookkeepingOfAll) {
  Quota::limit_bookkeeping_of_all(20 * kMiB);
  const auto make_quota = [](const char* name) {
    return std::make_shared<Quota>(name, QuotaLimits{}, std::vector<std::shared_ptr<Quota>>(), false);
  };
  {
    const auto a = make(make_quota("alice")), b = make(make_quota("bob"));
    EXPECT_TRUE(a->charge(kMiB << 20)) << "counts no tensors";
    EXPECT_EQ(a->quota()->held(), 0u);
    a->refund(kMiB << 20);
    a->charge_host(9 * kMiB);
    EXPECT_TRUE(a->has_host_room(kMiB));
    EXPECT_FALSE(a->has_host_room(2 * kMiB)) << "one has at most half";
    EXPECT_THAT(a->bookkeeping_refusal(2 * kMiB), HasSubstr("the sessions of alice have 9 MiB of bookkeeping"));
    b->charge_host(9 * kMiB);
    const auto c = make(make_quota("carol"));
    EXPECT_TRUE(c->has_host_room(2 * kMiB));
    EXPECT_FALSE(c->has_host_room(3 * kMiB));
  }
  EXPECT_TRUE(make(make_quota("alice"))->has_host_room(10 * kMiB));
  Quota::limit_bookkeeping_of_all(0);
}

TEST(QuotaTest, LimitsHandles) {
  const auto quota = std::make_shared<Quota>("alice", QuotaLimits{.handles = 1000});
  const auto a = make(quota), b = make(quota);
  a->set_bookkeeping(0, 900);
  b->set_bookkeeping(0, 90);
  b->set_program(0);
  EXPECT_EQ(quota->handles(), 990u);
  EXPECT_GT(b->host_room(), 0u);
  b->set_bookkeeping(0, 500);
  EXPECT_EQ(b->host_room(), 0u);
  EXPECT_THAT(b->bookkeeping_refusal(1), HasSubstr("the sessions of alice have 1400 handles, of at most 1000"));
  b->set_bookkeeping(0, 50);
  EXPECT_GT(b->host_room(), 0u);
}

TEST(QuotaTest, LowerLimitsEndNoSession) {
  const auto quota = std::make_shared<Quota>("alice");
  const auto a = make(quota);
  a->charge_host(Account::kHostAllowance + 32 * kMiB);
  quota->set_limits({.memory = kMiB});
  a->set_program(0);
  EXPECT_EQ(a->host_room(), 0u);
  EXPECT_FALSE(a->is_overdrawn());
  a->charge_host(Account::kHostOverdraft + 1);  // errors of refused instructions, without end
  EXPECT_TRUE(a->is_overdrawn());
}

TEST(QuotaTest, LimitsTransfers) {
  Quota quota("alice", {.transfers = 2});
  EXPECT_TRUE(quota.begin_transfer());
  EXPECT_TRUE(quota.begin_transfer());
  EXPECT_FALSE(quota.begin_transfer());
  quota.end_transfer();
  EXPECT_TRUE(quota.begin_transfer());
}

TEST(QuotaTest, ThreadsOfAnAccountReportTheSameSum) {
  const auto quota = std::make_shared<Quota>("alice");
  const auto a = make(quota);
  a->charge_host(Account::kHostAllowance);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) a->charge_host(100'000);
      for (int i = 0; i < 1990; ++i) a->refund_host(100'000);
    });
  }
  for (std::thread& thread : threads) thread.join();
  a->set_program(0);
  EXPECT_EQ(quota->bookkeeping(), 4u * 10 * 100'000);
}

}  // namespace
}  // namespace tt
