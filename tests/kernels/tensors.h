// Tensors for kernel tests: random numbers from a fixed seed, and elements as doubles.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "engine/device/devices.h"
#include "engine/tensor/tensor.h"
#include "gtest/gtest.h"
#include "kernels/common/iteration/element.h"

namespace tt::testing {

inline std::mt19937& random_bits() {
  static std::mt19937 bits(20261120);
  return bits;
}

inline double at(const Tensor& t, int64_t offset) {
  return with_element(t.dtype(),
                      [&]<typename T>(std::type_identity<T>) { return static_cast<double>(t.data_as<T>()[offset]); });
}
inline void put(const Tensor& t, int64_t offset, double value) {
  with_element(t.dtype(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T>) {
      t.data_as<T>()[offset] = static_cast<T>(static_cast<int64_t>(value));  // negative numbers wrap around
    } else {
      t.data_as<T>()[offset] = static_cast<T>(value);
    }
  });
}

// Multiples of 1/8 in [-2, 2], which every floating type represents; integers in [-8, 8] (unsigned: [0, 8]).
inline Tensor filled(Sizes sizes, DType dtype = DType::kFloat32) {
  Tensor t = empty(sizes, dtype, Device{});
  std::uniform_int_distribution<int> numbers(dtype == DType::kUInt8 ? 0 : -8, 8);
  for (int64_t i = 0; i < t.numel(); ++i)
    put(t, i, is_floating(dtype) ? numbers(random_bits()) / 4.0 : numbers(random_bits()));
  return t;
}
inline Tensor constant(Sizes sizes, double value, DType dtype = DType::kFloat32) {
  Tensor t = empty(sizes, dtype, Device{});
  for (int64_t i = 0; i < t.numel(); ++i) put(t, i, value);
  return t;
}
inline Tensor values(Sizes sizes, std::vector<double> numbers, DType dtype = DType::kFloat32) {
  Tensor t = empty(sizes, dtype, Device{});
  for (size_t i = 0; i < numbers.size(); ++i) put(t, static_cast<int64_t>(i), numbers[i]);
  return t;
}
// Swaps two dimensions, as a view.
inline Tensor transposed(const Tensor& t, int64_t a, int64_t b) {
  Geometry g{t.sizes(), t.strides(), t->offset, true};
  std::swap(g.sizes[a], g.sizes[b]);
  std::swap(g.strides[a], g.strides[b]);
  return view_of(t, g);
}

// Both contiguous, and equal within `tolerance` of the largest element.
inline void expect_close(const Tensor& got, const Tensor& want, double tolerance, const std::string& what = "") {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  double largest = 1;
  for (int64_t i = 0; i < want.numel(); ++i) largest = std::max(largest, std::fabs(at(want, i)));
  for (int64_t i = 0; i < want.numel(); ++i) {
    ASSERT_NEAR(at(got, i), at(want, i), tolerance * largest) << what << " at " << i;
  }
}
// The relative error of rounding to a dtype, and of summing in it.
inline double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64: return 1e-12;
    case DType::kFloat32: return 1e-5;
    case DType::kFloat16: return 2e-3;
    case DType::kBFloat16: return 1e-2;
    default: return 0;
  }
}

}  // namespace tt::testing
