#include "engine/schema/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tt {
namespace {

template <typename H>
H from_bits(uint32_t bits) {
  H h;
  h.bits = static_cast<uint16_t>(bits);
  return h;
}

template <typename H>
class HalfTest : public testing::Test {};
using Types = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(HalfTest, Types);

TYPED_TEST(HalfTest, RoundTripsThroughFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = from_bits<TypeParam>(bits);
    TypeParam back(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(back))) << std::hex << bits;
    } else {
      ASSERT_EQ(back.bits, bits) << std::hex << bits;
    }
  }
}

// Between adjacent numbers: the midpoint rounds to the even one, other values to the nearer one.
TYPED_TEST(HalfTest, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x8000; ++bits) {
    float low = from_bits<TypeParam>(bits), high = from_bits<TypeParam>(bits + 1);
    if (!std::isfinite(high)) break;
    double middle = (static_cast<double>(low) + high) / 2;
    float exact = static_cast<float>(middle);
    if (exact == middle) {
      ASSERT_EQ(TypeParam(exact).bits, bits + (bits & 1)) << std::hex << bits;
    }
    ASSERT_EQ(TypeParam(std::nextafter(exact, low)).bits, bits) << std::hex << bits;
    ASSERT_EQ(TypeParam(std::nextafter(exact, high)).bits, bits + 1) << std::hex << bits;
    ASSERT_EQ(TypeParam(-std::nextafter(exact, low)).bits, bits | 0x8000) << std::hex << bits;
  }
}

TEST(HalfTest, KnownValues) {
  EXPECT_EQ(Half(1.0f).bits, 0x3c00);
  EXPECT_EQ(Half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);  // the midpoint to the next power of two: infinity
  EXPECT_EQ(Half(0x1p-24f).bits, 0x0001);
  EXPECT_EQ(Half(0x1p-25f).bits, 0x0000);
  EXPECT_EQ(Half(-std::numeric_limits<float>::infinity()).bits, 0xfc00);
  EXPECT_EQ(BFloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
}

}  // namespace
}  // namespace tt
