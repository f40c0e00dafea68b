// Floating-point element types, and the types that kernels compute in for them.
#pragma once

#include "kernels/common/iteration/accumulate_type.h"
#include "kernels/cuda/launch/access.h"

namespace tt::cuda {

// The type to compute in: double for double, float for narrower types.
template <typename T>
using AccumulateType = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Calls f with std::type_identity of the element type. Throws Error (NotImplementedError) on a dtype that is not
// floating.
template <typename F>
decltype(auto) with_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat16: return f(std::type_identity<Half>());
    case DType::kBFloat16: return f(std::type_identity<BFloat16>());
    case DType::kFloat32: return f(std::type_identity<float>());
    case DType::kFloat64: return f(std::type_identity<double>());
    default: fail(ErrorKind::kNotImplemented, "not implemented for ", name(dtype));
  }
}

// One weight per channel: a contiguous vector of any floating dtype. If the vector is undefined, at() returns
// `otherwise`.
struct Weights {
  Access access;

  explicit Weights(const Tensor& t) : access(t ? Access(t) : Access(nullptr, DType::kFloat32)) {}
  template <typename C>
  TT_FUNCTION C at(int64_t i, C otherwise) const {
    if (!access.data) return otherwise;
    switch (access.dtype) {
      case DType::kFloat16: return convert<C>(static_cast<const Half*>(access.data)[i]);
      case DType::kBFloat16: return convert<C>(static_cast<const BFloat16*>(access.data)[i]);
      case DType::kFloat64: return static_cast<C>(static_cast<const double*>(access.data)[i]);
      default: return static_cast<C>(static_cast<const float*>(access.data)[i]);
    }
  }
};

}  // namespace tt::cuda
