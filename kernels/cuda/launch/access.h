// Access: reads and writes a tensor's elements of any dtype in the type that a kernel computes in.
#pragma once

#include "engine/schema/float8.h"
#include "engine/tensor/tensor.h"
#include "kernels/common/iteration/element.h"
#include "kernels/cuda/launch/half.h"

namespace tt::cuda {

// Calls f with std::type_identity of the element type. All threads take the same branch of the switch, so it is cheap
// compared with the memory access.
template <typename F>
TT_FUNCTION void with_element_of(DType dtype, F f) {
  switch (dtype) {
    case DType::kBool: return f(std::type_identity<Bool>());
    case DType::kUInt8: return f(std::type_identity<uint8_t>());
    case DType::kInt8: return f(std::type_identity<int8_t>());
    case DType::kInt16: return f(std::type_identity<int16_t>());
    case DType::kInt32: return f(std::type_identity<int32_t>());
    case DType::kInt64: return f(std::type_identity<int64_t>());
    case DType::kFloat16: return f(std::type_identity<Half>());
    case DType::kBFloat16: return f(std::type_identity<BFloat16>());
    case DType::kFloat32: return f(std::type_identity<float>());
    case DType::kUInt16: return f(std::type_identity<uint16_t>());
    case DType::kUInt32: return f(std::type_identity<uint32_t>());
    case DType::kUInt64: return f(std::type_identity<uint64_t>());
    default: return f(std::type_identity<double>());
  }
}

// Like with_element_of(), but also supports complex dtypes if C is complex.
template <typename C, typename F>
TT_FUNCTION void with_element_for(DType dtype, F f) {
  if constexpr (is_complex_v<C>) {
    if (dtype == DType::kComplex64) return f(std::type_identity<Complex<float>>());
    if (dtype == DType::kComplex128) return f(std::type_identity<Complex<double>>());
  }
  with_element_of(dtype, f);
}

// Converts a number to another type. Narrow floats convert through float, and floats to narrow integers through
// int32_t, so that they wrap around. A complex number converts to its real part, except to bool.
template <typename To, typename From>
TT_FUNCTION To convert(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (is_complex_v<To> && is_complex_v<From>)
    return To(value);
  else if constexpr (is_complex_v<To>)
    return To(convert<real_of_t<To>>(value));
  else if constexpr (std::is_same_v<To, Bool>)
    return Bool(!(value == From(0)));
  else if constexpr (is_complex_v<From>)
    return convert<To>(value.re);
  else if constexpr (is_float8_v<From>)
    return convert<To>(static_cast<float>(value));
  else if constexpr (is_float8_v<To>)
    return To(convert<float>(value));
  else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>)
    return convert<To>(widen(value));
  else if constexpr (std::is_same_v<From, Bool>)
    return static_cast<To>(static_cast<bool>(value) ? 1 : 0);
  else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>)
    return narrow<To>(static_cast<float>(value));
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && sizeof(To) < 4)
    return static_cast<To>(static_cast<int32_t>(value));
  else
    return static_cast<To>(value);
}

struct Access {
  void* data;
  DType dtype;

  // Throws Error (NotImplementedError) for complex dtypes, and for 8-bit floating-point dtypes, which callers must
  // widen first (float8.h).
  explicit Access(const Tensor& t) : data(t.data()), dtype(t.dtype()) {
    check(ErrorKind::kNotImplemented, !is_complex(dtype) && !is_float8(dtype), "not implemented for ", name(dtype),
          " on ", t.device());
  }
  constexpr Access(void* data, DType dtype) : data(data), dtype(dtype) {}

  template <typename C>
  TT_FUNCTION C load(int64_t i) const {
    C value{};
    with_element_for<C>(dtype,
                        [&]<typename T>(std::type_identity<T>) { value = convert<C>(static_cast<const T*>(data)[i]); });
    return value;
  }
  template <typename C>
  TT_FUNCTION void store(int64_t i, C value) const {
    with_element_for<C>(dtype,
                        [&]<typename T>(std::type_identity<T>) { static_cast<T*>(data)[i] = convert<T>(value); });
  }
};

}  // namespace tt::cuda
