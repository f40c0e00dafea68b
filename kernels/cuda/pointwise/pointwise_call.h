// CallBuilder: builds a PointwiseCall from an operator's tensors and numbers.
#pragma once

#include "kernels/common/iteration/element.h"
#include "kernels/cuda/launch/access.h"
#include "kernels/cuda/launch/vectors.h"
#include "kernels/cuda/pointwise/pointwise_rows.h"

namespace tt::cuda {

// Operands and numbers must be added in the order of the operator's parameters. Must not outlive `out`.
template <typename C>
class CallBuilder {
 public:
  explicit CallBuilder(const Tensor& out) : out_(out) {
    call_.out = out.data();
    call_.dtype = out.dtype();
    call_.sizes = out.sizes();
    call_.strides = out.strides();
    call_.numel = out.numel();
    call_.is_plain = out.is_contiguous() && is_aligned(out.data());
  }

  void add_tensor(const Tensor& t) {
    Source<C>& source = add_source();
    if (t.device() != out_.device()) {  // a zero-dimensional CPU tensor: read its value
      with_any_element(t.dtype(),
                       [&]<typename T>(std::type_identity<T>) { source.number = convert<C>(*t.data_as<T>()); });
      return;
    }
    source.data = t.data();
    source.dtype = t.dtype();
    source.strides = broadcast_strides(t.sizes(), t.strides(), out_.sizes());
    call_.is_plain = call_.is_plain && t.dtype() == out_.dtype() && t.sizes() == out_.sizes() && t.is_contiguous() &&
                     is_aligned(t.data());
  }
  // Adds a number in place of a tensor.
  void add_operand(C number) { add_source().number = number; }
  // Adds the value of a non-tensor parameter.
  void add_number(C number) {
    call_.scalar_args.value[num_scalar_args_] = number;
    call_.scalar_args.present |= uint32_t{1} << num_scalar_args_++;
  }
  // Adds a non-tensor parameter that was not given.
  void add_absent() { ++num_scalar_args_; }

  PointwiseCall<C>& call() { return call_; }

 private:
  Source<C>& add_source() {
    Source<C>& source = call_.in[num_inputs_++];
    source.strides.assign(out_.dim(), 0);
    return source;
  }

  const Tensor& out_;
  PointwiseCall<C> call_;
  int num_inputs_ = 0;
  int num_scalar_args_ = 0;
};

}  // namespace tt::cuda
