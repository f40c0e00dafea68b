// exponential(x): exp() in float, for numbers and for vectors of numbers, which loops over numbers vectorise.
//
// libmvec's expf calls the scalar function for each lane that is infinite, overflows or is below -87, which makes it
// twenty times slower: scores that a softmax or an attention masks are such lanes.
#pragma once

#include <bit>
#include <cstdint>

namespace tt::math {

// Within 2 ulp. `Integer` has 32 bits per lane of `Float`. Cody and Waite's reduction and the polynomial of Cephes'
// expf; 2^n is two factors, because n is 128 before an overflow and -150 for results that are denormal.
template <typename Float, typename Integer>
[[gnu::always_inline]] inline Float exponential_of(Float x) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: the last bits of a sum with it are an integer
  const Float low = Float{} - 104.0F, high = Float{} + 89.0F;
  x = x < low ? low : x;
  x = x > high ? high : x;
  const Float shifted = x * 1.44269504F + kRound, n = shifted - kRound;
  const Integer power = std::bit_cast<Integer>(shifted) - std::bit_cast<Integer>(Float{} + kRound);
  const Float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  Float p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  const Integer half = power >> 1, rest = power - half;
  return p * std::bit_cast<Float>((half + 127) << 23) * std::bit_cast<Float>((rest + 127) << 23);
}

[[gnu::always_inline]] inline float exponential(float x) { return exponential_of<float, int32_t>(x); }

}  // namespace tt::math
