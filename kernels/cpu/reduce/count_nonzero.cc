#include "kernels/cpu/reduce/count_nonzero.h"

#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/loops/reduce_fold.h"

namespace tt::cpu {

namespace {

template <typename T>
int64_t count(const Tensor& t, const ReducePlan& plan) {
  int64_t result = 0;
  reduce(Fold<Count<T>>(), t, plan, [&](int64_t, const int64_t* totals, int64_t) { result = totals[0]; });
  return result;
}

}  // namespace

int64_t count_true(const Tensor& t) {
  if (is_complex(t.dtype())) return count_true(contiguous_as(t, DType::kBool));
  const ReducePlan plan(t, {}, Order::kAny);
  switch (t.dtype()) {
    case DType::kFloat32: return count<float>(t, plan);
    case DType::kFloat64: return count<double>(t, plan);
    default: return count<uint8_t>(t, plan);
  }
}

}  // namespace tt::cpu
