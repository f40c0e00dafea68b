// Tensors for kernel tests, and access to their elements.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "engine/tensor/tensor.h"
#include "kernels/common/element.h"

namespace tt::cpu {

inline const DType kRealDTypes[] = {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};
inline const DType kAllDTypes[] = {DType::kBool,  DType::kUInt8,   DType::kInt8,     DType::kInt16,   DType::kInt32,
                                   DType::kInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};

// Calls f(offset) for every element in the tensor's own order.
template <typename F>
void for_each_element(const Tensor& t, F f) {
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t rest = i, offset = 0;
    for (int64_t d = t.dim(); d-- > 0;) {
      offset += rest % t.size(d) * t.stride(d);
      rest /= t.size(d);
    }
    f(offset);
  }
}

inline std::vector<double> values_of(const Tensor& t) {
  std::vector<double> values;
  with_element(t.dtype(), [&]<typename T>(std::type_identity<T>) {
    for_each_element(t, [&](int64_t at) { values.push_back(static_cast<double>(t.data_as<T>()[at])); });
  });
  return values;
}

inline void set_values(const Tensor& t, const std::vector<double>& values) {
  with_element(t.dtype(), [&]<typename T>(std::type_identity<T>) {
    size_t i = 0;
    for_each_element(t, [&](int64_t at) { t.data_as<T>()[at] = static_cast<T>(values[i++]); });
  });
}

inline Tensor tensor_of(SizesView sizes, const std::vector<double>& values, DType dtype = DType::kFloat32) {
  Tensor t = empty(sizes, dtype, Device{});
  set_values(t, values);
  return t;
}

// Uniform in [low, high); integers for integer dtypes.
inline Tensor random_tensor(SizesView sizes, DType dtype, double low = -4, double high = 5, unsigned seed = 1) {
  Tensor t = empty(sizes, dtype, Device{});
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(low, high);
  std::vector<double> values(t.numel());
  for (double& v : values) {
    v = uniform(generator);
    if (is_integral(dtype)) v = std::floor(dtype == DType::kUInt8 ? std::abs(v) : v);
    if (dtype == DType::kBool) v = v > 0;
  }
  set_values(t, values);
  return t;
}

inline Tensor transpose(const Tensor& t, int64_t a, int64_t b) {
  Sizes sizes = t.sizes(), strides = t.strides();
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return view_of(t, Geometry{sizes, strides, t->offset});
}

// Every second element along `dim`, starting with the second.
inline Tensor every_second(const Tensor& t, int64_t dim) {
  Sizes sizes = t.sizes(), strides = t.strides();
  sizes[dim] /= 2;
  strides[dim] *= 2;
  return view_of(t, Geometry{sizes, strides, t->offset + t.stride(dim)});
}

inline Tensor expand(const Tensor& t, int64_t dim, int64_t size) {
  Sizes sizes = t.sizes(), strides = t.strides();
  sizes.insert(sizes.begin() + dim, size);
  strides.insert(strides.begin() + dim, 0);
  return view_of(t, Geometry{sizes, strides, t->offset});
}

}  // namespace tt::cpu
