// Sums that many threads collect in one tensor, by atomics: in the wide type, rounded once at the end.
//
// The order is the threads', so that the last bits of a sum in floats may differ from run to run.
#pragma once

#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/launch/atomic.h"
#include "kernels/cuda/launch/floating.h"

namespace tt::cuda {

inline void fill_zeros(const Queue& queue, const Tensor& contiguous) {
  const size_t bytes = static_cast<size_t>(contiguous.numel()) * item_size(contiguous.dtype());
  if (bytes > 0) queue.fill(contiguous.data(), 0, bytes);
}

// Calls add(sums), which adds to a C* that holds zeros: `out`'s elements, C being out's wide type.
template <typename F>
void collect(Tensor& out, F&& add) {
  const Queue queue = queue_of(out);
  const DType wide = accumulate_type(out.dtype());
  const Tensor sums = wide == out.dtype() ? out : empty(out.sizes(), wide, out.device());
  fill_zeros(queue, sums);
  with_floating(wide, [&]<typename T>(std::type_identity<T>) { add(sums.data_as<Wide<T>>()); });
  if (!sums.same(out)) copy(sums, out);
}

}  // namespace tt::cuda
