// atomic_accumulate: accumulates results in a wider dtype and rounds them once at the end.
//
// Threads add with atomics in any order, so the last bits of floating-point sums may differ from run to run.
#pragma once

#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/launch/atomic.h"
#include "kernels/cuda/launch/floating.h"

namespace tt::cuda {

inline void fill_zeros(const Queue& queue, const Tensor& contiguous) {
  const size_t bytes = static_cast<size_t>(contiguous.numel()) * item_size(contiguous.dtype());
  if (bytes > 0) queue.fill(contiguous.data(), 0, bytes);
}

using AccumulateBuffer = BasicAccumulateBuffer<&copy>;

// Calls add(sums) with a C* to zeros, where C is the type of accumulate_type(out.dtype()). Stores the sums in `out`.
template <typename F>
void atomic_accumulate(Tensor& out, F&& add) {
  const AccumulateBuffer sums(out);
  fill_zeros(queue_of(out), sums.tensor());
  with_real(sums.tensor().dtype(), [&]<typename T>(std::type_identity<T>) { add(sums.data<T>()); });
  sums.copy_to_output();
}

}  // namespace tt::cuda
