#include "kernels/cpu/loops/strided_block.h"

#include "kernels/common/iteration/element.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {

namespace {

// The conversion of a floating value outside an integer's range is undefined in C++; PyTorch's result depends on the
// machine. This function saturates to int64.
template <typename To, typename From>
To cast(From value) {
  if constexpr (is_complex_v<To> && is_complex_v<From>) {
    return To(value);
  } else if constexpr (is_complex_v<To>) {
    return To(cast<real_of_t<To>>(value));
  } else if constexpr (is_complex_v<From> && !std::is_same_v<To, Bool>) {
    return cast<To>(value.re);
  } else if constexpr (std::is_same_v<To, Bool>) {
    return Bool(static_cast<bool>(value != From(0)));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr From kLimit = static_cast<From>(0x1p63);
    if (!(value > -kLimit)) return static_cast<To>(value == value ? INT64_MIN : 0);
    return static_cast<To>(value >= kLimit ? INT64_MAX : static_cast<int64_t>(value));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

template <typename T, typename From>
T widen(From value) {
  if constexpr (std::is_same_v<T, uint8_t> && !std::is_same_v<From, uint8_t>) {
    return static_cast<uint8_t>(value != From(0));
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return cast<T>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<From, Bool>) {
    return static_cast<T>(value.byte != 0);
  } else {
    return cast<T>(value);
  }
}

template <typename T, typename From>
TT_CLONES void load(T* __restrict dst, const From* __restrict src, int64_t stride, int64_t n) {
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) dst[i] = widen<T>(src[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i] = widen<T>(src[i * stride]);
  }
}

template <typename To, typename T>
TT_CLONES void store(To* __restrict dst, int64_t stride, const T* __restrict src, int64_t n) {
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) dst[i] = cast<To>(src[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i * stride] = cast<To>(src[i]);
  }
}

template <typename T>
void load_any(T* dst, const void* src, DType dtype, int64_t stride, int64_t n) {
  with_element(dtype,
               [&]<typename From>(std::type_identity<From>) { load(dst, static_cast<const From*>(src), stride, n); });
}

template <typename T>
void store_any(void* dst, DType dtype, int64_t stride, const T* src, int64_t n) {
  with_element(dtype, [&]<typename To>(std::type_identity<To>) { store(static_cast<To*>(dst), stride, src, n); });
}

}  // namespace

void load_block(float* dst, const void* src, DType dtype, int64_t stride, int64_t n) {
  load_any(dst, src, dtype, stride, n);
}
void load_block(double* dst, const void* src, DType dtype, int64_t stride, int64_t n) {
  load_any(dst, src, dtype, stride, n);
}
void load_block(int64_t* dst, const void* src, DType dtype, int64_t stride, int64_t n) {
  load_any(dst, src, dtype, stride, n);
}
void load_block(uint8_t* dst, const void* src, DType dtype, int64_t stride, int64_t n) {
  load_any(dst, src, dtype, stride, n);
}
void load_block(BFloat16* dst, const void* src, DType, int64_t stride, int64_t n) {
  const BFloat16* from = static_cast<const BFloat16*>(src);
  for (int64_t i = 0; i < n; ++i) dst[i] = from[i * stride];
}
void store_block(void* dst, DType dtype, int64_t stride, const float* src, int64_t n) {
  store_any(dst, dtype, stride, src, n);
}
void store_block(void* dst, DType dtype, int64_t stride, const double* src, int64_t n) {
  store_any(dst, dtype, stride, src, n);
}
void store_block(void* dst, DType dtype, int64_t stride, const int64_t* src, int64_t n) {
  store_any(dst, dtype, stride, src, n);
}
void store_block(void* dst, DType dtype, int64_t stride, const uint8_t* src, int64_t n) {
  store_any(dst, dtype, stride, src, n);
}

}  // namespace tt::cpu
