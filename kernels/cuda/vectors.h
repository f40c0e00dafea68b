// Vectors: sixteen bytes of elements, which a thread moves at once.
#pragma once

#include "kernels/cuda/access.h"

namespace tt::cuda {

template <typename T>
struct alignas(16) Vector {
  static constexpr int kLanes = 16 / sizeof(T);
  T at[kLanes];
};

// Whether a vector may begin there.
inline bool is_aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

#ifdef __CUDACC__

template <typename T>
__device__ Vector<T> load_vector(const T* from) {
  return __builtin_bit_cast(Vector<T>, *reinterpret_cast<const uint4*>(from));
}
template <typename T>
__device__ void store_vector(T* to, const Vector<T>& vector) {
  *reinterpret_cast<uint4*>(to) = __builtin_bit_cast(uint4, vector);
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

template <typename T>
Vector<T> load_vector(const T* from) {
  return *reinterpret_cast<const Vector<T>*>(from);
}
template <typename T>
void store_vector(T* to, const Vector<T>& vector) {
  *reinterpret_cast<Vector<T>*>(to) = vector;
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
