#include "engine/memory/room_maker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "tests/engine/memory/device_pool.h"

namespace tt {
namespace {

using testing::HasSubstr;

class TestRoomMaker final : public RoomMaker {
 public:
  explicit TestRoomMaker(std::function<bool(Device, size_t, const Account*)> make) : make_(std::move(make)) {}
  bool make_room(Device device, size_t bytes, const Account* account) override {
    calls.fetch_add(1);
    return make_(device, bytes, account);
  }
  std::atomic<int> calls{0};

 private:
  const std::function<bool(Device, size_t, const Account*)> make_;
};

class RoomMakerTest : public testing::Test {
 protected:
  ~RoomMakerTest() override { set_room_maker(nullptr); }
  std::shared_ptr<TestRoomMaker> use(std::function<bool(Device, size_t, const Account*)> make) {
    auto maker = std::make_shared<TestRoomMaker>(std::move(make));
    set_room_maker(maker);
    return maker;
  }
  DevicePool device{"", 64 * kMiB};
};

TEST_F(RoomMakerTest, IsNotCalledByAnAllocationThatFits) {
  const auto maker = use([](Device, size_t, const Account*) { return true; });
  char* const p = device.allocate(20 * kMiB);
  device.deallocate(p, 20 * kMiB);
  device.deallocate(device.allocate(60 * kMiB), 60 * kMiB);  // after the pool's own cache was emptied
  EXPECT_EQ(maker->calls, 0);
}

TEST_F(RoomMakerTest, FreesMemoryForAnAllocation) {
  char* idle = device.allocate(40 * kMiB);
  Device asked;
  size_t bytes = 0;
  const auto maker = use([&](Device for_device, size_t wanted, const Account*) {
    asked = for_device;
    bytes = wanted;
    device.deallocate(std::exchange(idle, nullptr), 40 * kMiB);  // the pool's lock is not held
    return true;
  });
  char* const p = device.allocate(50 * kMiB);
  EXPECT_EQ(maker->calls, 1);
  EXPECT_EQ(asked, (Device{DeviceType::kCUDA, 0}));
  EXPECT_EQ(bytes, 50 * kMiB);
  device.deallocate(p, 50 * kMiB);
}

TEST_F(RoomMakerTest, IsCalledAgainWhileItFreesSomethingButNotForEver) {
  std::vector<char*> idle;
  for (int i = 0; i < 3; ++i) idle.push_back(device.allocate(20 * kMiB));
  const auto maker = use([&](Device, size_t, const Account*) {
    if (idle.empty()) return false;
    device.deallocate(idle.back(), 20 * kMiB);
    idle.pop_back();
    return true;
  });
  char* const p = device.allocate(60 * kMiB);
  EXPECT_EQ(maker->calls, 3);
  EXPECT_THAT(device.error_of(20 * kMiB), HasSubstr("out of memory"));
  EXPECT_EQ(maker->calls, 4);
  device.deallocate(p, 60 * kMiB);

  char* const all = device.allocate(60 * kMiB);
  const auto liar = use([](Device, size_t, const Account*) { return true; });
  EXPECT_THAT(device.error_of(20 * kMiB), HasSubstr("out of memory"));
  EXPECT_GT(liar->calls, 1);
  EXPECT_LT(liar->calls, 100);
  device.deallocate(all, 60 * kMiB);
}

TEST_F(RoomMakerTest, GetsTheAccountOfTheRequestOrOfTheThread) {
  const Account* seen = nullptr;
  const auto maker = use([&](Device, size_t, const Account* account) {
    seen = account;
    return false;
  });
  char* const all = device.allocate(60 * kMiB);
  const auto account = std::make_shared<Account>("session 3");
  EXPECT_THROW(device.pool.allocate(20 * kMiB, {&device.stream, kNoTenant, &account}), Error);
  EXPECT_EQ(seen, account.get());
  EXPECT_THROW(device.pool.allocate(20 * kMiB, {&device.stream}), Error);
  EXPECT_EQ(seen, nullptr);
  device.deallocate(all, 60 * kMiB);
}

TEST_F(RoomMakerTest, IsNotCalledByItsOwnAllocations) {
  char* const all = device.allocate(60 * kMiB);
  int failed = 0;
  const auto maker = use([&](Device, size_t, const Account*) {
    try {
      device.allocate(30 * kMiB);
    } catch (const Error&) {
      ++failed;
    }
    return false;
  });
  EXPECT_THAT(device.error_of(20 * kMiB), HasSubstr("out of memory"));
  EXPECT_EQ(maker->calls, 1);
  EXPECT_EQ(failed, 1);
  EXPECT_THAT(device.error_of(20 * kMiB), HasSubstr("out of memory"));
  EXPECT_EQ(maker->calls, 2) << "an ended call must not prevent the next one";
  device.deallocate(all, 60 * kMiB);
}

TEST_F(RoomMakerTest, RequestAboveTheLimitOfThePoolIsRefusedAtOnce) {
  device.pool.set_limit(32 * kMiB);
  const auto maker = use([](Device, size_t, const Account*) { return true; });
  EXPECT_THAT(device.error_of(40 * kMiB), HasSubstr("out of memory"));
  EXPECT_EQ(maker->calls, 0);
}

TEST_F(RoomMakerTest, MayBeReplacedWhileItIsCalled) {
  char* const all = device.allocate(60 * kMiB);
  std::thread replacing;
  const auto maker = use([&](Device, size_t, const Account*) {
    replacing = std::thread([] { set_room_maker(nullptr); });
    replacing.join();  // does not wait for this call
    return false;
  });
  EXPECT_THAT(device.error_of(20 * kMiB), HasSubstr("out of memory"));
  EXPECT_THAT(device.error_of(20 * kMiB), HasSubstr("out of memory"));
  EXPECT_EQ(maker->calls, 1);
  device.deallocate(all, 60 * kMiB);
}

}  // namespace
}  // namespace tt
