// amax and amin.
#include "kernels/cuda/reduce/reduce_extremum.h"

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/reduce/ordered_bits.h"
#include "kernels/cuda/reduce/reduce_sum.h"

namespace tt::cuda {

namespace {

using Dims = std::optional<absl::Span<const int64_t>>;

template <bool kMax>
void extremum_into(const Tensor& input, const Dims& dim, Tensor& out) {
  const Tensor x = ordered_bits(input);
  const ReducePlan plan(x, dim.value_or(absl::Span<const int64_t>()), Order::kAny);
  with_reduced(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    reduce(Extremum<T, kMax, Identity>{Access(out), weakest<T, kMax>()}, x, plan);
  });
  restore_bits(out);
}

}  // namespace

void amax(const Tensor& input, Dims dim, bool, Tensor& out) { extremum_into<true>(input, dim, out); }

void amin(const Tensor& input, Dims dim, bool, Tensor& out) { extremum_into<false>(input, dim, out); }

}  // namespace tt::cuda
