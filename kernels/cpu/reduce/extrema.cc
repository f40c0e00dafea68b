// The largest and the smallest element along dimensions.
#include <type_traits>

#include "kernels/cpu/iteration/complex_as_real.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/reduce/fold_into.h"

namespace tt::cpu {

namespace {

template <template <typename, typename> typename Monoid>
void extremum_into(const Tensor& input, const OptionalDims& dim, Tensor& out) {
  const Tensor x = ordered_bits(input);
  const ReducePlan plan = reduction_plan(x, dim);
  auto as = [&]<typename T>(std::type_identity<T>) {
    fold_into<Monoid<T, Identity>>(x, plan, out, [](const T& total) { return total; });
  };
  if (x.dtype() == DType::kBool || x.dtype() == DType::kUInt8) return as(std::type_identity<uint8_t>());
  with_reduction_type(x.dtype(), as);
  restore_bits(out);
}

}  // namespace

void amax(const Tensor& input, OptionalDims dim, bool, Tensor& out) { extremum_into<Largest>(input, dim, out); }

void amin(const Tensor& input, OptionalDims dim, bool, Tensor& out) { extremum_into<Smallest>(input, dim, out); }

}  // namespace tt::cpu
