// AccumulateBuffer: a result in the type that it is accumulated in. 16-bit floats are accumulated in float32.
#pragma once

#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/launch/floating.h"

namespace tt::cuda {

// Refers to `out`, or to a temporary tensor that copy_to_output() rounds and copies to `out`.
class AccumulateBuffer {
 public:
  explicit AccumulateBuffer(const Tensor& out)
      : out_(out),
        wide_(out.dtype() == accumulate_type(out.dtype())
                  ? out
                  : empty(out.sizes(), accumulate_type(out.dtype()), out.device())) {}
  const Tensor& tensor() const { return wide_; }
  template <typename T>
  T* data() const {
    return wide_.data_as<T>();
  }
  void copy_to_output() const {
    if (!wide_.same(out_)) copy(wide_, out_);
  }

 private:
  Tensor out_, wide_;
};

// Calls f with std::type_identity of float or double. Throws Error (NotImplementedError) for other dtypes.
template <typename F>
decltype(auto) with_real(DType dtype, F&& f) {
  if (dtype == DType::kFloat32) return f(std::type_identity<float>());
  if (dtype == DType::kFloat64) return f(std::type_identity<double>());
  fail(ErrorKind::kNotImplemented, "not implemented for ", name(dtype));
}

}  // namespace tt::cuda
