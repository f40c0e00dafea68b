#include "engine/schema/float8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tt {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The value of an encoding with `mantissa` bits and exponent bias `bias`, by definition.
float meaning(int bits, int mantissa, int bias) {
  const int exponent = (bits & 0x7f) >> mantissa, fraction = bits & ((1 << mantissa) - 1);
  const float value = exponent == 0
                          ? std::ldexp(static_cast<float>(fraction), 1 - bias - mantissa)
                          : std::ldexp(static_cast<float>(fraction + (1 << mantissa)), exponent - bias - mantissa);
  return bits & 0x80 ? -value : value;
}

template <typename T>
T from_bits(int bits) {
  T value;
  value.bits = static_cast<uint8_t>(bits);
  return value;
}

TEST(Float8Test, DecodesEveryPattern) {
  for (int bits = 0; bits < 256; ++bits) {
    const float e4m3 = from_bits<Float8E4m3fn>(bits), e5m2 = from_bits<Float8E5m2>(bits);
    EXPECT_EQ(std::signbit(e4m3), bits >= 128);
    EXPECT_EQ(std::signbit(e5m2), bits >= 128);
    if ((bits & 0x7f) == 0x7f)
      EXPECT_TRUE(std::isnan(e4m3));
    else
      EXPECT_EQ(e4m3, meaning(bits, 3, 7)) << bits;
    if ((bits & 0x7f) > 0x7c)
      EXPECT_TRUE(std::isnan(e5m2));
    else if ((bits & 0x7f) == 0x7c)
      EXPECT_EQ(std::fabs(e5m2), kInfinity);
    else
      EXPECT_EQ(e5m2, meaning(bits, 2, 15)) << bits;
  }
}

// Values between adjacent numbers round to the nearer one; the midpoint to the even one.
template <typename T>
void expect_nearest(int last) {
  for (int bits = 0; bits < last; ++bits) {
    const float low = from_bits<T>(bits), high = from_bits<T>(bits + 1), middle = (low + high) / 2;
    for (const float sign : {1.0F, -1.0F}) {
      const int mark = sign < 0 ? 0x80 : 0;
      EXPECT_EQ(T(sign * low).bits, bits | mark);
      EXPECT_EQ(T(sign * middle).bits, (bits % 2 == 0 ? bits : bits + 1) | mark) << middle;
      EXPECT_EQ(T(sign * std::nextafter(middle, 0.0F)).bits, bits | mark) << middle;
      EXPECT_EQ(T(sign * std::nextafter(middle, kInfinity)).bits, (bits + 1) | mark) << middle;
    }
  }
}

TEST(Float8Test, RoundsToNearestEven) {
  expect_nearest<Float8E4m3fn>(0x7e);
  expect_nearest<Float8E5m2>(0x7b);
}

TEST(Float8Test, OverflowsToLargestOrInfinity) {
  for (const float value : {448.0F, 449.0F, 464.0F, 480.0F, 1e9F, 3e38F, kInfinity}) {
    EXPECT_EQ(Float8E4m3fn(value).bits, 0x7e) << value;
    EXPECT_EQ(Float8E4m3fn(-value).bits, 0xfe) << value;
  }
  EXPECT_EQ(Float8E5m2(61439.0F).bits, 0x7b);
  for (const float value : {61440.0F, 65504.0F, 1e9F, 3e38F, kInfinity}) {
    EXPECT_EQ(Float8E5m2(value).bits, 0x7c) << value;
    EXPECT_EQ(Float8E5m2(-value).bits, 0xfc) << value;
  }
  EXPECT_EQ(Float8E4m3fn(kNan).bits, 0x7f);
  EXPECT_EQ(Float8E5m2(-kNan).bits, 0xff);
  EXPECT_EQ(Float8E4m3fn(-0.0F).bits, 0x80);
  EXPECT_EQ(Float8E5m2(std::numeric_limits<float>::denorm_min()).bits, 0);
}

}  // namespace
}  // namespace tt
