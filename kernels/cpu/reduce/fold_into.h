// fold_into: reduces a tensor by a monoid (loops/reduce_fold.h) and stores the results in any dtype.
#pragma once

#include <type_traits>

#include "kernels/cpu/loops/reduce_fold.h"
#include "kernels/cpu/loops/reduce_into.h"

namespace tt::cpu {

// Stores result(total) of each output in `out`, as reduce_into() does. Reads bfloat16 without a converted copy.
template <typename Monoid, typename Result>
void fold_into(const Tensor& input, const ReducePlan& plan, Tensor& out, Result result,
               const BlockSource* source = nullptr) {
  if constexpr (std::is_same_v<typename Monoid::Value, float>) {
    if (input.dtype() == DType::kBFloat16) return reduce_into(Fold<Monoid, BFloat16>(), input, plan, out, result);
  }
  reduce_into(Fold<Monoid>(), input, plan, out, result, source);
}

}  // namespace tt::cpu
