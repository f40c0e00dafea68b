#include "engine/device/devices.h"

#include <gtest/gtest.h>

#include "engine/schema/error.h"

namespace tt {
namespace {

TEST(DevicesTest, CpuIsRegisteredFirst) {
  Devices& devices = Devices::instance();
  ASSERT_EQ(devices.list().size(), 1u);
  EXPECT_GT(devices.list()[0].total_memory, uint64_t{1} << 20);
  EXPECT_TRUE(devices.has(Device{}));
  EXPECT_FALSE(devices.has(Device{DeviceType::kCUDA}));
  EXPECT_THROW(devices.allocator(Device{DeviceType::kCUDA}), Error);
  EXPECT_THROW(add_cpu(devices), Error);
}

TEST(DevicesTest, CpuStreamIsAlwaysIdle) {
  Stream& stream = Devices::instance().stream(Device{});
  auto event = stream.record();
  EXPECT_TRUE(event->done());
  stream.wait(*event);
  stream.synchronize();
}

}  // namespace
}  // namespace tt
