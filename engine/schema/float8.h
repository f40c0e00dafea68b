// Float8E4m3fn and Float8E5m2: 8-bit floating storage types. They are only copied and cast, via float; nothing computes
// in them.
#pragma once

#include <bit>
#include <cstdint>

#include "engine/schema/half.h"

namespace tt {

namespace float8_bits {
// Rounds to nearest even, to kMantissa bits of mantissa and an exponent bias of kBias. Requires a magnitude that does
// not overflow.
template <int kMantissa, int kBias>
constexpr uint8_t round_to_nearest(uint32_t magnitude) {
  constexpr uint32_t kDroppedBits = 23 - kMantissa;
  if (magnitude < static_cast<uint32_t>(128 - kBias) << 23) {  // subnormal: the addition rounds to nearest even
    constexpr uint32_t kOne = static_cast<uint32_t>(128 - kBias + kDroppedBits) << 23;
    const float shifted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kOne);
    return static_cast<uint8_t>(std::bit_cast<uint32_t>(shifted) - kOne);
  }
  const uint32_t odd = (magnitude >> kDroppedBits) & 1u;
  const uint32_t rebiased = magnitude - (static_cast<uint32_t>(127 - kBias) << 23);
  return static_cast<uint8_t>((rebiased + ((1u << (kDroppedBits - 1)) - 1) + odd) >> kDroppedBits);
}
constexpr uint8_t sign_of(uint32_t bits) { return static_cast<uint8_t>(bits >> 24 & 0x80u); }
}  // namespace float8_bits

// 4 bits of exponent, 3 of mantissa, no infinity: larger values saturate to 448.
struct Float8E4m3fn {
  uint8_t bits = 0;
  constexpr Float8E4m3fn() = default;
  constexpr Float8E4m3fn(float value) {  // NOLINT: converts like a float
    const uint32_t b = std::bit_cast<uint32_t>(value), magnitude = b & 0x7fffffffu;
    constexpr uint32_t kMaxFinite = 0x43e00000u, kInfinity = 0x7f800000u;
    const uint8_t rounded = magnitude > kInfinity     ? uint8_t{0x7f}
                            : magnitude >= kMaxFinite ? uint8_t{0x7e}
                                                      : float8_bits::round_to_nearest<3, 7>(magnitude);
    bits = static_cast<uint8_t>(float8_bits::sign_of(b) | rounded);
  }
  constexpr operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24, magnitude = bits & 0x7fu;
    if (magnitude == 0x7fu) return std::bit_cast<float>(sign | 0x7ff00000u);
    if (magnitude >= 8) return std::bit_cast<float>(sign | ((magnitude << 20) + 0x3c000000u));
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-9f));
  }
};

// 5 bits of exponent, 2 of mantissa: the upper byte of half precision.
struct Float8E5m2 {
  uint8_t bits = 0;
  constexpr Float8E5m2() = default;
  constexpr Float8E5m2(float value) {  // NOLINT: converts like a float
    const uint32_t b = std::bit_cast<uint32_t>(value), magnitude = b & 0x7fffffffu;
    constexpr uint32_t kOverflow = 0x47700000u,
                       kInfinity = 0x7f800000u;  // kOverflow is halfway between 57344 and infinity
    const uint8_t rounded = magnitude > kInfinity    ? uint8_t{0x7f}
                            : magnitude >= kOverflow ? uint8_t{0x7c}
                                                     : float8_bits::round_to_nearest<2, 15>(magnitude);
    bits = static_cast<uint8_t>(float8_bits::sign_of(b) | rounded);
  }
  constexpr operator float() const { return half_bits::to_float(static_cast<uint16_t>(bits << 8)); }
};

template <typename T>
inline constexpr bool is_float8_v = false;
template <>
inline constexpr bool is_float8_v<Float8E4m3fn> = true;
template <>
inline constexpr bool is_float8_v<Float8E5m2> = true;

}  // namespace tt
