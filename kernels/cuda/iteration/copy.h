// Copies between tensors of any dtype and layout, within a device, between devices, and to and from the host.
#pragma once

#include "absl/functional/function_ref.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/tensor/tensor.h"

namespace tt::cuda {

// Writes src, broadcast and converted, over dst, in the order of the stream of the GPU that is involved (dst's, where
// two are). To the host it waits until the bytes are there, and throws what src turns out to have failed with.
void copy(const Tensor& src, const Tensor& dst);
// Row-major elements: `t` itself where it is contiguous, else a copy. Undefined stays undefined.
Tensor contiguous(const Tensor& t);
// The same, converted. Throws Error (NotImplementedError) where that would drop imaginary parts: whoever asks computes
// in real numbers.
Tensor contiguous_as(const Tensor& t, DType dtype);
// Fills `dst`, contiguous on a GPU, with what `write` puts into host memory of its size; nothing waits.
void upload(const Tensor& dst, absl::FunctionRef<void(void*)> write);
// The kernels of `assign` and `clone`: an argument, the second or the first, lands in the output.
void assign(Call& call);
void clone(Call& call);

}  // namespace tt::cuda
