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

}  // namespace
}  // namespace tt
