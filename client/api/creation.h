// Tensors from values of the program. Operators that create tensors (zeros, randn, ...) are in client/api/functions.h.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <vector>

#include "client/api/functions.h"
#include "client/api/tensor.h"

namespace teletensor {

/// Nested lists of numbers, all of the same shape: {{1, 2}, {3, 4}}. Numbers of all types become booleans, integers or
/// floating-point numbers, whichever is the largest category.
class TensorData {
 public:
  template <typename T>
  requires std::is_arithmetic_v<T> TensorData(T number) : scalar_(convert(number)) {}  // NOLINT: an element
  TensorData(std::initializer_list<TensorData> list);                                  // NOLINT
  const std::vector<TensorData>& list() const { return list_; }
  bool is_list() const { return is_list_; }
  const Scalar& scalar() const { return scalar_; }

 private:
  template <typename T>
  static Scalar convert(T number) {
    if constexpr (std::same_as<T, bool>)
      return Scalar(number);
    else if constexpr (std::is_floating_point_v<T>)
      return Scalar(static_cast<double>(number));
    else
      return Scalar(static_cast<int64_t>(number));
  }
  Scalar scalar_;
  std::vector<TensorData> list_;
  bool is_list_ = false;
};

/// A tensor of the values in the current session. The dtype defaults to that of the values: bool, int64 or the default
/// dtype. Throws ValueError if the lists have different lengths.
Tensor tensor(const TensorData& data, const TensorOptions& options = {});
/// A one-dimensional tensor of a vector; the dtype defaults to that of T, or for double to the default dtype.
template <typename T>
requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>) Tensor
    tensor(const std::vector<T>& values, const TensorOptions& options = {});

/// A tensor of a copy of row-major elements in the caller's memory, which is not used after the call. The elements have
/// the dtype of the options, or float32. Unlike libtorch's, the tensor does not share the memory.
Tensor from_blob(const void* data, IntArrayRef sizes, const TensorOptions& options = {});

template <typename T>
requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>) Tensor
    tensor(const std::vector<T>& values, const TensorOptions& options) {
  const Dtype own = dtype_of<T>();
  const Tensor made =
      from_blob(values.data(), static_cast<int64_t>(values.size()), options.dtype(own).requires_grad(false));
  const Dtype wanted = options.dtype_opt().value_or(own == kDouble ? get_default_dtype() : own);
  Tensor result = made.to(wanted);
  if (options.requires_grad()) result.set_requires_grad(true);
  return result;
}

}  // namespace teletensor
