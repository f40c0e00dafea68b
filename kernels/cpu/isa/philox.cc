// Philox and the distributions of its words, compiled once per instruction set.

#include <cstdint>

#include "kernels/common/math/scalar_math.h"
#include "kernels/cpu/iteration/block.h"

namespace tt::cpu::TT_ISA {

namespace {

// Computes a group of blocks, as tt::philox (engine/session/generator.h) computes one block. The body is straight-line
// code per block, which vectorises; a loop over lanes inside the rounds would not.
void words(uint64_t seed, uint64_t counter, uint32_t* out) {
  for (int i = 0; i < kGroupBlocks; ++i) {
    const uint64_t at = counter + static_cast<uint64_t>(i);
    uint32_t c0 = static_cast<uint32_t>(at), c1 = static_cast<uint32_t>(at >> 32), c2 = 0, c3 = 0;
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
      c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
      c1 = static_cast<uint32_t>(p1);
      c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c3 = static_cast<uint32_t>(p0);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    out[i] = c0;
    out[kGroupBlocks + i] = c1;
    out[2 * kGroupBlocks + i] = c2;
    out[3 * kGroupBlocks + i] = c3;
  }
}

// Uniform numbers in [0, 1): 24 bits of one word, or 53 bits of two.
TT_HOST_DEVICE float unit(uint32_t word) { return static_cast<float>(static_cast<int32_t>(word >> 8)) * 0x1p-24f; }
TT_HOST_DEVICE double unit(uint32_t high, uint32_t low) {
  return static_cast<double>(static_cast<int64_t>(uint64_t{high >> 5} << 26 | low >> 6)) * 0x1p-53;
}

void uniform_f32(const uint32_t* w, float* out) {
  for (int i = 0; i < kGroupWords; ++i) out[i] = unit(w[i]);
}

// A double combines words j and j + 1 of a block.
void uniform_f64(const uint32_t* w, double* out) {
  for (int pair = 0; pair < 2; ++pair, w += 2 * kGroupBlocks, out += kGroupBlocks) {
    for (int i = 0; i < kGroupBlocks; ++i) out[i] = unit(w[i], w[kGroupBlocks + i]);
  }
}

// The Box-Muller transform, in place: uniform numbers in `radii` and `angles` become normal ones. Sines and cosines
// are computed in separate loops, because for a joint loop the compiler calls sincos, which it cannot vectorise.
template <typename T>
TT_HOST_DEVICE void to_normals(T* radii, T* angles) {
  T cosines[kGroupBlocks];
#pragma GCC ivdep
  for (int i = 0; i < kGroupBlocks; ++i) radii[i] = math::sqrt(T(-2) * math::log(T(1) - radii[i]));
#pragma GCC ivdep
  for (int i = 0; i < kGroupBlocks; ++i) cosines[i] = math::cos(T(2) * math::kPi<T> * angles[i]);
#pragma GCC ivdep
  for (int i = 0; i < kGroupBlocks; ++i) angles[i] = radii[i] * math::sin(T(2) * math::kPi<T> * angles[i]);
  for (int i = 0; i < kGroupBlocks; ++i) radii[i] *= cosines[i];
}

void normal_f32(const uint32_t* w, float* out) {
  uniform_f32(w, out);
  to_normals(out, out + kGroupBlocks);
  to_normals(out + 2 * kGroupBlocks, out + 3 * kGroupBlocks);
}

void normal_f64(const uint32_t* w, double* out) {
  uniform_f64(w, out);
  to_normals(out, out + kGroupBlocks);
}

}  // namespace

RandomFunctions random_functions() { return {&words, &uniform_f32, &uniform_f64, &normal_f32, &normal_f64}; }

}  // namespace tt::cpu::TT_ISA
