// The types that kernels compute in: 16-bit floats are computed in float32.
#pragma once

#include <cstdint>
#include <type_traits>

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt {

// The dtype in which elements of `dtype` are summed: float32 for the 16-bit floats, else `dtype` itself.
inline DType accumulate_type(DType dtype) { return is_reduced_floating(dtype) ? DType::kFloat32 : dtype; }

// Calls f with std::type_identity of float or double. Throws Error (NotImplementedError) on another dtype.
template <typename F>
decltype(auto) with_real(DType dtype, F&& f) {
  if (dtype == DType::kFloat32) return f(std::type_identity<float>());
  if (dtype == DType::kFloat64) return f(std::type_identity<double>());
  fail(ErrorKind::kNotImplemented, "not implemented for ", name(dtype));
}

// Calls f with std::type_identity of the type in which `dtype` is reduced: double for float64, float for the other
// floating dtypes, int64_t for integers and bool. Throws Error (NotImplementedError) on another dtype.
template <typename F>
void with_reduction_type(DType dtype, F&& f) {
  if (dtype == DType::kFloat64) return f(std::type_identity<double>());
  if (is_floating(dtype)) return f(std::type_identity<float>());
  check(ErrorKind::kNotImplemented, is_integral(dtype), "not implemented for ", name(dtype));
  f(std::type_identity<int64_t>());
}

// A contiguous result in the dtype used for computation: `out` itself if it is that, else a new tensor that
// copy_to_output() converts into `out`. Each backend defines AccumulateBuffer as this template with the backend's
// copy(). `out` must outlive this object.
template <void (*kCopy)(const Tensor& src, const Tensor& dst)>
class BasicAccumulateBuffer {
 public:
  explicit BasicAccumulateBuffer(const Tensor& out) : BasicAccumulateBuffer(out, accumulate_type(out.dtype())) {}
  BasicAccumulateBuffer(const Tensor& out, DType dtype)
      : out_(out),
        buffer_(out.dtype() == dtype && out.is_contiguous() ? out : empty(out.sizes(), dtype, out.device())) {}
  Tensor& tensor() { return buffer_; }
  const Tensor& tensor() const { return buffer_; }
  template <typename T>
  T* data() const {
    return buffer_.template data_as<T>();
  }
  void copy_to_output() const {
    if (!buffer_.same(out_)) kCopy(buffer_, out_);
  }

 private:
  const Tensor& out_;
  Tensor buffer_;
};

}  // namespace tt
