// Atomics: operations that several threads of a launch may apply to one address. On the host, where threads run one at
// a time, an atomic operation is plain code that may switch to another thread (simulated_group.h).
//
// atomic_add() supports any element type (kernels/common/iteration/element.h). An element narrower than a word is
// updated as part of the word that contains it.
#pragma once

#include <utility>

#include "kernels/common/iteration/element.h"
#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

#ifdef __CUDACC__

// Atomically computes *at = op(*at).
template <typename T, typename Op>
__device__ void atomic_update(T* at, Op op) {
  if constexpr (sizeof(T) >= 4) {
    using Word = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
    auto* word = reinterpret_cast<Word*>(at);
    Word old = *word, seen;
    do {
      seen = old;
      old = atomicCAS(word, seen, __builtin_bit_cast(Word, op(__builtin_bit_cast(T, seen))));
    } while (old != seen);
  } else {
    using Piece = std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>;
    const auto address = reinterpret_cast<uintptr_t>(at);
    auto* word = reinterpret_cast<unsigned*>(address & ~uintptr_t{3});
    const unsigned shift = static_cast<unsigned>(address & 3) * 8;
    const unsigned mask = ((1u << (8 * sizeof(T))) - 1) << shift;
    unsigned old = *word, seen;
    do {
      seen = old;
      const T value = op(__builtin_bit_cast(T, static_cast<Piece>((seen & mask) >> shift)));
      const unsigned bits = static_cast<unsigned>(__builtin_bit_cast(Piece, value)) << shift;
      old = atomicCAS(word, seen, (seen & ~mask) | bits);
    } while (old != seen);
  }
}

template <typename T>
__device__ void atomic_add(T* at, T value) {
  if constexpr (is_complex_v<T>) {  // the two parts are added separately
    atomicAdd(&at->re, value.re);
    atomicAdd(&at->im, value.im);
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int32_t>) {
    atomicAdd(at, value);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value));
  } else {
    atomic_update(at, [=](T old) { return static_cast<T>(old + value); });
  }
}

// Atomically adds one to *at; returns the old value.
__device__ inline int64_t atomic_next(int64_t* at) {
  return static_cast<int64_t>(atomicAdd(reinterpret_cast<unsigned long long*>(at), 1ull));
}

// Atomically sets `flag` to 1. Returns whether it was 0.
__device__ inline bool test_and_set(uint32_t* flag) { return atomicExch_system(flag, 1u) == 0; }

// Atomically sets *at to the larger of *at and `value`.
__device__ inline void atomic_max(int64_t* at, int64_t value) {
  atomicMax_system(reinterpret_cast<long long*>(at), static_cast<long long>(value));
}

#else

template <typename T, typename Op>
void atomic_update(T* at, Op op) {
  yield_randomly();
  *at = op(*at);
  yield_randomly();
}
template <typename T>
void atomic_add(T* at, T value) {
  atomic_update(at, [=](T old) { return static_cast<T>(old + value); });
}
inline int64_t atomic_next(int64_t* at) {
  yield_randomly();
  const int64_t old = (*at)++;
  yield_randomly();
  return old;
}
inline bool test_and_set(uint32_t* flag) {
  yield_randomly();
  const bool first = std::exchange(*flag, 1u) == 0;
  yield_randomly();
  return first;
}
inline void atomic_max(int64_t* at, int64_t value) {
  atomic_update(at, [=](int64_t old) { return old > value ? old : value; });
}

#endif

}  // namespace tt::cuda
