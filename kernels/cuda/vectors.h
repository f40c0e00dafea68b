// Vectors: elements that a thread moves at once, sixteen bytes at most.
#pragma once

#include "kernels/cuda/access.h"

namespace tt::cuda {

template <typename T, int kCount = 16 / sizeof(T)>
struct alignas(kCount * sizeof(T)) Vector {
  static constexpr int kLanes = kCount;
  T at[kCount];
};

// Whether a vector may begin there.
inline bool is_aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

#ifdef __CUDACC__

// What the hardware moves in one instruction.
template <int kBytes>
struct Word;
template <>
struct Word<16> {
  using Type = uint4;
};
template <>
struct Word<8> {
  using Type = uint2;
};
template <>
struct Word<4> {
  using Type = unsigned;
};
template <>
struct Word<2> {
  using Type = unsigned short;
};

template <typename T, int kCount = 16 / sizeof(T)>
__device__ Vector<T, kCount> load_vector(const T* from) {
  using W = typename Word<kCount * sizeof(T)>::Type;
  return __builtin_bit_cast(Vector<T, kCount>, *reinterpret_cast<const W*>(from));
}
template <typename T, int kCount>
__device__ void store_vector(T* to, const Vector<T, kCount>& vector) {
  using W = typename Word<kCount * sizeof(T)>::Type;
  *reinterpret_cast<W*>(to) = __builtin_bit_cast(W, vector);
}

// One element of any dtype. Functions that are called, not expanded: the ten cases of each would fill every kernel.
template <typename C>
__device__ __noinline__ C load_any(const void* data, DType dtype, int64_t at) {
  return Access(const_cast<void*>(data), dtype).template load<C>(at);
}
template <typename C>
__device__ __noinline__ void store_any(Access to, int64_t at, C value) {
  to.store(at, value);
}

#else

template <typename T, int kCount = 16 / sizeof(T)>
Vector<T, kCount> load_vector(const T* from) {
  return *reinterpret_cast<const Vector<T, kCount>*>(from);
}
template <typename T, int kCount>
void store_vector(T* to, const Vector<T, kCount>& vector) {
  *reinterpret_cast<Vector<T, kCount>*>(to) = vector;
}
template <typename C>
C load_any(const void* data, DType dtype, int64_t at) {
  return Access(const_cast<void*>(data), dtype).template load<C>(at);
}
template <typename C>
void store_any(Access to, int64_t at, C value) {
  to.store(at, value);
}

#endif

}  // namespace tt::cuda
