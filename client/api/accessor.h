// TensorAccessor: a copy of a tensor's elements on the client's side, accessed by N indices.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/schema/dtype.h"

namespace teletensor {

/// The dtype of a C++ type.
template <typename T>
constexpr tt::DType dtype_of() {
  using tt::DType;
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
  if constexpr (std::is_same_v<T, float>) return DType::kFloat32;
  if constexpr (std::is_same_v<T, double>) return DType::kFloat64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return DType::kComplex64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return DType::kComplex128;
  if constexpr (std::is_integral_v<T>) {
    constexpr bool is_signed = std::is_signed_v<T>;
    if (sizeof(T) == 1) return is_signed ? DType::kInt8 : DType::kUInt8;
    if (sizeof(T) == 2) return is_signed ? DType::kInt16 : DType::kUInt16;
    if (sizeof(T) == 4) return is_signed ? DType::kInt32 : DType::kUInt32;
    return is_signed ? DType::kInt64 : DType::kUInt64;
  }
  static_assert(
      std::is_arithmetic_v<T> || std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>,
      "expected the C++ type of a dtype");
}

/// The elements of a tensor with N dimensions. Writes change the copy only. Copies of an accessor share the elements.
template <typename T, size_t N>
class TensorAccessor {
 public:
  TensorAccessor(std::vector<T> values, const std::vector<int64_t>& sizes)
      : TensorAccessor(std::make_shared<std::vector<T>>(std::move(values)), sizes, 0) {
    if (sizes.size() != N) {
      throw std::invalid_argument("accessor: expected a tensor with " + std::to_string(N) + " dimensions, got " +
                                  std::to_string(sizes.size()));
    }
  }
  int64_t size(size_t dim) const { return sizes_.at(dim); }
  /// The element, or the accessor of the remaining dimensions. The index is not checked.
  decltype(auto) operator[](int64_t i) const {
    if constexpr (N == 1) {
      return (*values_)[offset_ + static_cast<size_t>(i)];
    } else {
      size_t inner = 1;
      for (size_t dim = 1; dim < N; ++dim) inner *= static_cast<size_t>(sizes_[dim]);
      return TensorAccessor<T, N - 1>(values_, {sizes_.begin() + 1, sizes_.end()},
                                      offset_ + static_cast<size_t>(i) * inner);
    }
  }

 private:
  template <typename, size_t>
  friend class TensorAccessor;
  TensorAccessor(std::shared_ptr<std::vector<T>> values, std::vector<int64_t> sizes, size_t offset)
      : values_(std::move(values)), sizes_(std::move(sizes)), offset_(offset) {}

  std::shared_ptr<std::vector<T>> values_;
  std::vector<int64_t> sizes_;
  size_t offset_ = 0;
};

}  // namespace teletensor
