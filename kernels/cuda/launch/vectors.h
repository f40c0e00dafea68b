// Vector: elements that a thread loads or stores with one instruction, at most 16 bytes.
#pragma once

#include "kernels/cuda/launch/access.h"

namespace tt::cuda {

template <typename T, int kCount = 16 / sizeof(T)>
struct alignas(kCount * sizeof(T)) Vector {
  static constexpr int kLanes = kCount;
  T at[kCount];
};

// Whether `p` is aligned for a vector.
inline bool is_aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

// Four elements in the type to compute in, loaded from and stored to any dtype.
template <typename C>
using Vec4 = Vector<C, 4>;

#ifdef __CUDACC__

#define TT_CALLED __device__ __noinline__  // a function that is not inlined

// Loads and stores a word with one instruction. Uses assembly because the compiler loads a vector's elements one by
// one.
template <int kBytes>
struct Word;
template <>
struct Word<16> {
  unsigned at[4];
  __device__ static Word load(const void* from) {
    Word word;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(word.at[0]), "=r"(word.at[1]), "=r"(word.at[2]), "=r"(word.at[3])
                 : "l"(from));
    return word;
  }
  __device__ void store(void* to) const {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
                 : "memory");
  }
};
template <>
struct Word<8> {
  unsigned at[2];
  __device__ static Word load(const void* from) {
    Word word;
    asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(word.at[0]), "=r"(word.at[1]) : "l"(from));
    return word;
  }
  __device__ void store(void* to) const {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(at[0]), "r"(at[1]) : "memory");
  }
};
template <>
struct Word<4> {
  unsigned at;
  __device__ static Word load(const void* from) {
    Word word;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(word.at) : "l"(from));
    return word;
  }
  __device__ void store(void* to) const { asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(at) : "memory"); }
};
template <>
struct Word<2> {
  unsigned short at;
  __device__ static Word load(const void* from) { return {*static_cast<const unsigned short*>(from)}; }
  __device__ void store(void* to) const { *static_cast<unsigned short*>(to) = at; }
};

template <typename T, int kCount = 16 / sizeof(T)>
__device__ Vector<T, kCount> load_vector(const T* from) {
  return __builtin_bit_cast(Vector<T, kCount>, Word<kCount * sizeof(T)>::load(from));
}
template <typename T, int kCount>
__device__ void store_vector(T* to, const Vector<T, kCount>& vector) {
  __builtin_bit_cast(Word<kCount * sizeof(T)>, vector).store(to);
}

#else

#define TT_CALLED inline

template <typename T, int kCount = 16 / sizeof(T)>
Vector<T, kCount> load_vector(const T* from) {
  return *reinterpret_cast<const Vector<T, kCount>*>(from);
}
template <typename T, int kCount>
void store_vector(T* to, const Vector<T, kCount>& vector) {
  *reinterpret_cast<Vector<T, kCount>*>(to) = vector;
}
#endif

// A vector's elements in the type to compute in.
template <typename C, int kCount>
struct Lanes {
  C at[kCount];
};

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <typename C, typename T, int kCount>
TT_FUNCTION Lanes<C, kCount> lanes_of(const Vector<T, kCount>& vector) {
  Lanes<C, kCount> lanes;
  if constexpr (kIsHalf<T> && std::is_same_v<C, float> && kCount % 2 == 0) {
    const auto pairs = __builtin_bit_cast(Vector<uint32_t, kCount / 2>, vector);
    TT_UNROLL
    for (int i = 0; i < kCount / 2; ++i) {
      lanes.at[2 * i] = widen_low<T>(pairs.at[i]);
      lanes.at[2 * i + 1] = widen_high<T>(pairs.at[i]);
    }
  } else {
    TT_UNROLL
    for (int i = 0; i < kCount; ++i) lanes.at[i] = convert<C>(vector.at[i]);
  }
  return lanes;
}
template <typename T, typename C, int kCount>
TT_FUNCTION Vector<T, kCount> vector_of(const Lanes<C, kCount>& lanes) {
  if constexpr (kIsHalf<T> && std::is_same_v<C, float> && kCount % 2 == 0) {
    Vector<uint32_t, kCount / 2> pairs;
    TT_UNROLL
    for (int i = 0; i < kCount / 2; ++i) pairs.at[i] = narrow_pair<T>(lanes.at[2 * i], lanes.at[2 * i + 1]);
    return __builtin_bit_cast(Vector<T, kCount>, pairs);
  } else {
    Vector<T, kCount> vector;
    TT_UNROLL
    for (int i = 0; i < kCount; ++i) vector.at[i] = convert<T>(lanes.at[i]);
    return vector;
  }
}

// Access to elements of any dtype. Not inlined, because a switch over ten dtypes would bloat every kernel.

template <typename C>
TT_CALLED C load_any(const void* data, DType dtype, int64_t at) {
  return Access(const_cast<void*>(data), dtype).template load<C>(at);
}
template <typename C>
TT_CALLED void store_any(Access to, int64_t at, C value) {
  to.store(at, value);
}

// Loads four adjacent elements or, if `step` is 0, one element four times.
template <typename C>
TT_CALLED Vec4<C> load_vec4(const void* data, DType dtype, int64_t at, int64_t step) {
  Vec4<C> quad;
  with_element_of(dtype, [&]<typename T>(std::type_identity<T>) {
    const T* from = static_cast<const T*>(data) + at;
    if (step != 0 && reinterpret_cast<uintptr_t>(from) % (4 * sizeof(T)) == 0 && sizeof(T) <= 4) {
      if constexpr (sizeof(T) <= 4) {
        const Vector<T, 4> values = load_vector<T, 4>(from);
        TT_UNROLL
        for (int i = 0; i < 4; ++i) quad.at[i] = convert<C>(values.at[i]);
      }
    } else {
      TT_UNROLL
      for (int i = 0; i < 4; ++i) quad.at[i] = convert<C>(from[i * step]);
    }
  });
  return quad;
}
template <typename C>
TT_CALLED void store_vec4(Access to, int64_t at, Vec4<C> quad) {
  with_element_of(to.dtype, [&]<typename T>(std::type_identity<T>) {
    T* target = static_cast<T*>(to.data) + at;
    if (reinterpret_cast<uintptr_t>(target) % (4 * sizeof(T)) == 0 && sizeof(T) <= 4) {
      if constexpr (sizeof(T) <= 4) {
        Vector<T, 4> values;
        TT_UNROLL
        for (int i = 0; i < 4; ++i) values.at[i] = convert<T>(quad.at[i]);
        store_vector(target, values);
      }
    } else {
      TT_UNROLL
      for (int i = 0; i < 4; ++i) target[i] = convert<T>(quad.at[i]);
    }
  });
}

}  // namespace tt::cuda
