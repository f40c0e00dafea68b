// AccumulateBuffer and accumulate_type: the types that floating-point kernels compute in; 16-bit floats do so in
// float32.
#pragma once

#include <type_traits>

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"

namespace tt::cpu {

inline DType accumulate_type(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 ? DType::kFloat32 : dtype;
}
// Contiguous, in the wide type. Undefined stays undefined.
inline Tensor wide(const Tensor& t) { return t ? contiguous_as(t, accumulate_type(t.dtype())) : t; }

// A result in the type it is computed in: `out` itself, or a tensor that copy_to_output() rounds into it.
class AccumulateBuffer {
 public:
  explicit AccumulateBuffer(Tensor& out) : AccumulateBuffer(out, accumulate_type(out.dtype())) {}
  AccumulateBuffer(Tensor& out, DType dtype)
      : out_(out), wide_(out.dtype() == dtype ? out : empty(out.sizes(), dtype, out.device())) {}
  Tensor& tensor() { return wide_; }
  void copy_to_output() {
    if (!wide_.same(out_)) copy(wide_, out_);
  }

 private:
  Tensor& out_;
  Tensor wide_;
};

// Its elements, or null where it is undefined.
template <typename T>
const T* data_or_null(const Tensor& t) {
  return t ? t.data_as<T>() : nullptr;
}

// Calls f with std::type_identity of float or double. Throws Error (NotImplementedError) on a dtype that is neither.
template <typename F>
decltype(auto) with_real(DType dtype, F&& f) {
  if (dtype == DType::kFloat32) return f(std::type_identity<float>());
  if (dtype == DType::kFloat64) return f(std::type_identity<double>());
  fail(ErrorKind::kNotImplemented, "not implemented for ", name(dtype));
}

}  // namespace tt::cpu
