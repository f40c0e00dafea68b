// padded<C, K, Loop>: adapts a loop over whole vectors to any length.
//
// Elements after the last whole vector are processed in a padded copy: no scalar loop is compiled, and an element's
// value does not depend on its position in a block.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/complex_libm.h"
#include "kernels/common/special_math.h"
#include "kernels/cpu/iteration/block.h"

namespace tt::cpu::TT_ISA {

inline constexpr int64_t kLanes = 16;

// The value that a body computes with. For bfloat16, `low_bits` holds the bits of a scalar that do not fit its 16
// bits (block.h), else 0.
template <typename C>
TT_HOST_DEVICE C value_of(C x, uint32_t) {
  return x;
}
TT_HOST_DEVICE float value_of(BFloat16 x, uint32_t low_bits) {
  return std::bit_cast<float>(uint32_t{x.bits} << 16 | low_bits);
}

template <typename C, int kInputs, auto Loop>
void padded(int64_t n, const C* const* in, C* out, const ScalarArgs<C>& scalar_args) {
  const int64_t whole = n & -kLanes;
  if (whole != 0) Loop(whole, in, out, scalar_args);
  if (whole == n) return;
  alignas(64) C copies[kInputs][kLanes];
  alignas(64) C results[kLanes];
  const C* copied[kInputs];
  for (int k = 0; k < kInputs; ++k) {
    // Pads with an existing element, which cannot trigger a slow path that the block would not take anyway.
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
