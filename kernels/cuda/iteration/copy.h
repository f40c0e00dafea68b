// Copies between tensors of any dtype and layout: within a device, between devices, to and from the host.
#pragma once

#include "absl/functional/function_ref.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/tensor/tensor.h"

namespace tt::cuda {

// Broadcasts src, converts it and writes it to dst, in stream order of the GPU involved (of dst's GPU for two GPUs). A
// copy to the host waits for the bytes, and throws the errors that src's pending work reports.
void copy(const Tensor& src, const Tensor& dst);
// Returns `t` if it is contiguous or undefined, else a contiguous copy.
Tensor contiguous(const Tensor& t);
// Like contiguous(), but also converts to `dtype`. Throws Error (NotImplementedError) for conversions from complex to
// real dtypes other than bool, which would drop imaginary parts.
Tensor contiguous_as(const Tensor& t, DType dtype);
// Fills `dst`, contiguous on a GPU, with the bytes that `write` stores in host memory of the same size. Does not wait.
void upload(const Tensor& dst, absl::FunctionRef<void(void*)> write);
// Kernel of the operator `assign`: copies the second argument to the output.
void assign(Call& call);
// Kernel of the operator `clone`: copies the argument to the output.
void clone(Call& call);

}  // namespace tt::cuda
