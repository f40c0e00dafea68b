// padded<C, K, Loop>: a loop over whole vectors as a function for any length.
//
// The rest after the last whole vector goes through a padded copy: no scalar loop is compiled, and
// an element's value does not depend on where in a block it stands.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/math/complex_libm.h"
#include "kernels/common/math/special_math.h"
#include "kernels/cpu/iteration/block.h"

namespace tt::cpu::TT_ISA {

inline constexpr int64_t kLanes = 16;

// What a body computes with. Bits that bfloat16 has no place for are a number's (block.h), or 0.
template <typename C>
TT_HOST_DEVICE C value_of(C x, uint32_t) {
  return x;
}
TT_HOST_DEVICE float value_of(BFloat16 x, uint32_t low_bits) {
  return std::bit_cast<float>(uint32_t{x.bits} << 16 | low_bits);
}

template <typename C, int kInputs, auto Loop>
void padded(int64_t n, const C* const* in, C* out, const Numbers<C>& numbers) {
  const int64_t whole = n & -kLanes;
  if (whole != 0) Loop(whole, in, out, numbers);
  if (whole == n) return;
  alignas(64) C copies[kInputs][kLanes];
  alignas(64) C results[kLanes];
  const C* copied[kInputs];
  for (int k = 0; k < kInputs; ++k) {
    // Repeating an element that is there raises no slow path that it would not have taken.
    for (int64_t i = 0; i < kLanes; ++i) copies[k][i] = in[k][whole + i < n ? whole + i : whole];
    copied[k] = copies[k];
  }
  Loop(kLanes, copied, results, numbers);
  for (int64_t i = whole; i < n; ++i) out[i] = results[i - whole];
}

// A loop over uint64 as a function of the bits, int64.
template <int kInputs, auto Loop>
void as_unsigned(int64_t n, const int64_t* const* in, int64_t* out, const Numbers<int64_t>& numbers) {
  padded<uint64_t, kInputs, Loop>(n, reinterpret_cast<const uint64_t* const*>(in), reinterpret_cast<uint64_t*>(out),
                                  reinterpret_cast<const Numbers<uint64_t>&>(numbers));
}

}  // namespace tt::cpu::TT_ISA
