// with_element: dispatches from a dtype to the C++ type of its elements.
//
//   with_element(t.dtype(), [&]<typename T>(std::type_identity<T>) { ... t.data_as<T>() ... });
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "engine/schema/dtype.h"
#include "engine/schema/error.h"
#include "engine/schema/half.h"
#include "kernels/common/math/complex.h"

namespace tt {

// A bool as stored in tensors. Every byte other than 0 is true, because clients may upload any bytes; reading such a
// byte as a C++ bool would be undefined behaviour.
struct Bool {
  uint8_t byte = 0;
  constexpr Bool() = default;
  constexpr Bool(bool value) : byte(value) {}  // NOLINT: converts implicitly, like bool
  constexpr operator bool() const { return byte != 0; }
};

template <typename T>
constexpr bool is_nan(T value) {
  if constexpr (std::is_integral_v<T> || std::is_same_v<T, Bool>)
    return false;
  else
    return value != value;
}

// Throws Error (NotImplementedError) for a complex dtype.
template <typename F>
decltype(auto) with_element(DType dtype, F&& f) {
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
    case DType::kFloat64: return f(std::type_identity<double>());
    case DType::kUInt16: return f(std::type_identity<uint16_t>());
    case DType::kUInt32: return f(std::type_identity<uint32_t>());
    case DType::kUInt64: return f(std::type_identity<uint64_t>());
    default: fail(ErrorKind::kNotImplemented, "not implemented for ", name(dtype));
  }
}

// Like with_element(), but also accepts complex dtypes.
template <typename F>
decltype(auto) with_any_element(DType dtype, F&& f) {
  if (dtype == DType::kComplex64) return f(std::type_identity<Complex<float>>());
  if (dtype == DType::kComplex128) return f(std::type_identity<Complex<double>>());
  return with_element(dtype, std::forward<F>(f));
}

// A 16-byte element that is only copied.
struct Bits16 {
  uint64_t low = 0;
  uint64_t high = 0;
  constexpr Bits16() = default;
  constexpr explicit Bits16(int value) : low(static_cast<uint64_t>(value)) {}
  constexpr bool operator==(const Bits16&) const = default;
};

// Dispatches on the element size, for kernels that only copy elements: an unsigned integer or Bits16.
template <typename F>
decltype(auto) with_bits(DType dtype, F&& f) {
  switch (item_size(dtype)) {
    case 1: return f(std::type_identity<uint8_t>());
    case 2: return f(std::type_identity<uint16_t>());
    case 4: return f(std::type_identity<uint32_t>());
    case 8: return f(std::type_identity<uint64_t>());
    case 16: return f(std::type_identity<Bits16>());
    default: fail(ErrorKind::kNotImplemented, "not implemented for ", name(dtype));
  }
}

}  // namespace tt
