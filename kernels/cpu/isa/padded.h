// padded<C, K, Loop>: adapts a loop over whole vectors to any length.
//
// Elements after the last whole vector are processed with the last of it again or, where this would read results, in a
// padded copy. No scalar loop is needed, and an element's result does not depend on its position in a block.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>

#include "kernels/common/math/complex_libm.h"
#include "kernels/common/math/special_math.h"
#include "kernels/cpu/iteration/block.h"

namespace tt::cpu::TT_ISA {

inline constexpr int64_t kLanes = 16;

// Converts an element to the type in which a body is computed. For bfloat16, `low_bits` are the lower 16 bits of a
// scalar's float value (block.h), or 0 for a tensor.
template <typename C>
TT_HOST_DEVICE C value_of(C x, uint32_t) {
  return x;
}
TT_HOST_DEVICE float value_of(BFloat16 x, uint32_t low_bits) {
  return std::bit_cast<float>(uint32_t{x.bits} << 16 | low_bits);
}

// A value that bfloat16 has, whose lower bits are 0.
TT_HOST_DEVICE BFloat16 upper_bits(float x) {
  BFloat16 upper;
  upper.bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
  return upper;
}

template <typename C, int kInputs, auto Loop>
void padded(int64_t n, const C* const* in, C* out, const ScalarArgs<C>& scalar_args) {
  const int64_t whole = n & -kLanes;
  if (whole != 0) Loop(whole, in, out, scalar_args);
  if (whole == n) return;
  const C* last[kInputs];
  bool reads_results = whole == 0;
  for (int k = 0; k < kInputs; ++k) {
    reads_results |= std::less<>()(in[k], out + n) && std::less<>()(out, in[k] + n);
    last[k] = in[k] + n - kLanes;
  }
  if (!reads_results) return Loop(kLanes, last, out + n - kLanes, scalar_args);
  alignas(64) C copies[kInputs][kLanes];
  alignas(64) C results[kLanes];
  const C* copied[kInputs];
  for (int k = 0; k < kInputs; ++k) {
    // Pads with an existing element: a different value could make the loop take a slower path.
    for (int64_t i = 0; i < kLanes; ++i) copies[k][i] = in[k][whole + i < n ? whole + i : whole];
    copied[k] = copies[k];
  }
  Loop(kLanes, copied, results, scalar_args);
  for (int64_t i = whole; i < n; ++i) out[i] = results[i - whole];
}

// Adapts a loop over uint64 to int64 pointers.
template <int kInputs, auto Loop>
void as_unsigned(int64_t n, const int64_t* const* in, int64_t* out, const ScalarArgs<int64_t>& scalar_args) {
  padded<uint64_t, kInputs, Loop>(n, reinterpret_cast<const uint64_t* const*>(in), reinterpret_cast<uint64_t*>(out),
                                  reinterpret_cast<const ScalarArgs<uint64_t>&>(scalar_args));
}

}  // namespace tt::cpu::TT_ISA
