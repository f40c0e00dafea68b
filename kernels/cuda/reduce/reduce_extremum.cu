// amax and amin.
#include "kernels/cuda/reduce/reduce_extremum.h"

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/reduce/ordered_bits.h"
#include "kernels/cuda/reduce/reduce_sum.h"

namespace tt::cuda {

namespace {

template <bool kMax>
void extremum_into(const Tensor& input, const OptionalDims& dim, Tensor& out) {
  const Tensor x = ordered_bits(input);
  const ReducePlan plan = reduction_plan(x, dim);
  with_reduction_type(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    reduce(Extremum<T, kMax, Identity>{Access(out), extremum_identity<T, kMax>()}, x, plan);
  });
  restore_bits(out);
}

}  // namespace

void amax(const Tensor& input, OptionalDims dim, bool, Tensor& out) { extremum_into<true>(input, dim, out); }

void amin(const Tensor& input, OptionalDims dim, bool, Tensor& out) { extremum_into<false>(input, dim, out); }

}  // namespace tt::cuda
