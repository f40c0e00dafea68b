// Sums that many threads accumulate in one tensor by atomic operations, in the accumulate type, rounded once at the
// end.
//
// The order of additions is not fixed, so the last bits of a floating-point sum may differ between runs.
#pragma once

#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/launch/atomic.h"
#include "kernels/cuda/launch/floating.h"

namespace tt::cuda {

inline void fill_zeros(const Queue& queue, const Tensor& contiguous) {
  const size_t bytes = static_cast<size_t>(contiguous.numel()) * item_size(contiguous.dtype());
  if (bytes > 0) queue.fill(contiguous.data(), 0, bytes);
}

// Calls add(sums), which adds to a C* of zeros. sums has the elements of `out`; C is the accumulate type of `out`.
template <typename F>
void atomic_accumulate(Tensor& out, F&& add) {
  const Queue queue = queue_of(out);
  const DType wide = accumulate_type(out.dtype());
  const Tensor sums = wide == out.dtype() ? out : empty(out.sizes(), wide, out.device());
  fill_zeros(queue, sums);
  with_floating(wide, [&]<typename T>(std::type_identity<T>) { add(sums.data_as<AccumulateType<T>>()); });
  if (!sums.same(out)) copy(sums, out);
}

}  // namespace tt::cuda
