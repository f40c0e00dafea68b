#include "engine/tensor/storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/device/devices.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"

namespace tt {
namespace {

using testing::HasSubstr;

uint64_t allocated() { return Devices::instance().allocator(Device{}).stats().all.requested.now; }

struct StorageTest : testing::Test {
  Context context;
  ContextScope scope{&context};
};

TEST_F(StorageTest, ChargesAndRefundsCurrentAccount) {
  auto account = std::make_shared<Account>("session 3");
  context.account = account;
  uint64_t before = allocated();
  auto a = make_ref<Storage>(Device{}, 1000);
  auto b = make_ref<Storage>(Device{}, 24);
  EXPECT_EQ(account->held(), 1024u);
  EXPECT_EQ(allocated(), before + 1024);
  context.account = nullptr;  // a storage remembers its account
  a = nullptr;
  b = nullptr;
  EXPECT_EQ(account->held(), 0u);
  EXPECT_EQ(account->peak(), 1024u);
  EXPECT_EQ(allocated(), before);
}

TEST_F(StorageTest, AccountLimitAffectsThatAccountOnly) {
  context.account = std::make_shared<Account>("session 7", 1000);
  auto held = make_ref<Storage>(Device{}, 600);
  try {
    Storage(Device{}, 500);
    FAIL() << "the limit was exceeded";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kOutOfMemory);
    EXPECT_EQ(e.message(),
              "[allocate] out of memory on cpu: requested 500 B; session 7 holds 600 B of its 1000 B limit");
  }
  EXPECT_EQ(context.account->held(), 600u);
  context.account = std::make_shared<Account>("session 8");
  EXPECT_NO_THROW(Storage(Device{}, 500));
}

TEST_F(StorageTest, FullDeviceErrorNamesHolder) {
  context.account = std::make_shared<Account>("session 3");
  auto held = make_ref<Storage>(Device{}, 2048);
  try {
    Storage(Device{}, size_t{1} << 60);
    FAIL() << "the allocation did not fail";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kOutOfMemory);
    EXPECT_THAT(e.message(), HasSubstr("requested 1 EiB"));
    EXPECT_THAT(e.message(), HasSubstr("session 3 holds 2 KiB in total"));
  }
  EXPECT_EQ(context.account->held(), 2048u);
}

TEST_F(StorageTest, MetaStoragesAllocateNothing) {
  context.account = std::make_shared<Account>("session 3", 1);
  Storage storage(Device{DeviceType::kMeta}, size_t{1} << 40);
  EXPECT_EQ(storage.data(), nullptr);
  EXPECT_EQ(context.account->held(), 0u);
}

TEST_F(StorageTest, MissingDeviceIsError) {
  context.account = std::make_shared<Account>("session 3");
  EXPECT_THROW(Storage(Device{DeviceType::kCUDA}, 8), Error);
  EXPECT_EQ(context.account->held(), 0u);
}

TEST_F(StorageTest, FrozenBytesAreReadOnlyForAllTheirStorages) {
  const auto owner = std::make_shared<Account>("session 1"), reader = std::make_shared<Account>("session 2");
  context.account = owner;
  const auto bytes = make_ref<Storage>(Device{}, 64);
  EXPECT_EQ(bytes->num_holders(), 0u);
  bytes->make_shareable();
  EXPECT_FALSE(bytes->is_shared());
  const Ref<Storage> early = Storage::over(bytes, reader);
  EXPECT_TRUE(early->is_shared());
  bytes->freeze();
  const Ref<Storage> late = Storage::over(early, std::make_shared<Account>("session 3"));
  EXPECT_TRUE(bytes->is_read_only());
  EXPECT_TRUE(late->is_read_only());
  EXPECT_FALSE(late->is_shared()) << "what nobody writes may be kept in other layouts";
  EXPECT_EQ(bytes->num_holders(), 3u);
  bytes->share();
  EXPECT_FALSE(bytes->is_shared());
  EXPECT_EQ(late->data(), bytes->data());
}

TEST_F(StorageTest, AQuotaPaysOnceForSharedBytes) {
  const auto quota = std::make_shared<Quota>("alice", QuotaLimits{.memory = 100});
  const auto account = [&](const char* name, uint64_t limit = 0) {
    return std::make_shared<Account>(name, limit, Account::DescribeSite{}, Account::new_tenant(), quota);
  };
  const auto first = account("session 1"), second = account("session 2"), small = account("session 3", 50);
  context.account = first;
  auto bytes = make_ref<Storage>(Device{}, 60);
  bytes->share();
  Ref<Storage> again = Storage::over(bytes, second);
  EXPECT_EQ(second->held(), 60u);
  EXPECT_EQ(quota->held(), 60u);
  EXPECT_THROW(Storage::over(bytes, small), Error) << "the session's own limit counts";
  EXPECT_THROW(Storage(Device{}, 60), Error) << "other bytes are charged";
  const auto other = std::make_shared<Quota>("bob", QuotaLimits{.memory = 100});
  const auto others = std::make_shared<Account>("session 4", 0, Account::DescribeSite{}, Account::new_tenant(), other);
  Ref<Storage> foreign = Storage::over(bytes, others);
  EXPECT_EQ(other->held(), 60u) << "each quota pays";
  bytes = nullptr;
  EXPECT_EQ(first->held(), 0u);
  EXPECT_EQ(quota->held(), 60u) << "until its last account has dropped them";
  again = nullptr;
  EXPECT_EQ(quota->held(), 0u);
  foreign = nullptr;
  EXPECT_EQ(other->held(), 0u);
}

}  // namespace
}  // namespace tt
