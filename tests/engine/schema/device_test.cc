#include "engine/schema/device.h"

#include <gtest/gtest.h>

#include "engine/schema/error.h"

namespace tt {
namespace {

TEST(DeviceTest, ReadsAndWritesNames) {
  EXPECT_EQ(parse_device("cpu"), Device{});
  EXPECT_EQ(parse_device("cpu:0"), Device{});
  EXPECT_EQ(parse_device("cuda"), (Device{DeviceType::kCUDA, 0}));
  EXPECT_EQ(parse_device("cuda:12"), (Device{DeviceType::kCUDA, 12}));
  for (const char* text : {"cpu", "cuda:0", "cuda:127", "meta"}) EXPECT_EQ(to_string(parse_device(text)), text);
}

TEST(DeviceTest, RejectsInvalidNames) {
  for (const char* text : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:128", "cpu:1", "cpu cuda"}) {
    EXPECT_THROW(parse_device(text), Error) << text;
  }
}

TEST(DeviceTest, NumbersRoundTrip) {
  for (Device d : {Device{}, Device{DeviceType::kCUDA, 3}, Device{DeviceType::kMeta, 0}}) {
    EXPECT_EQ(decode_device(d.encode()), d);
  }
  for (int64_t number : {int64_t{-1}, int64_t{1}, int64_t{0x180}, int64_t{0x300}, int64_t{1} << 40}) {
    EXPECT_THROW(decode_device(number), Error) << number;
  }
}

}  // namespace
}  // namespace tt
