// reduce_into: reduces a tensor and stores the results in any dtype.
#pragma once

#include "kernels/common/iteration/accumulate_type.h"
#include "kernels/cpu/loops/reduce_driver.h"
#include "kernels/cpu/loops/strided_block.h"

namespace tt::cpu {

// Stores result(total) of each output in `out`, which must be contiguous. result() must return float, double, int64_t
// or uint8_t. With a source, `input` has no data (ReduceRun).
template <typename R, typename Result>
void reduce_into(const R& reduction, const Tensor& input, const ReducePlan& plan, Tensor& out, Result result,
                 const BlockSource* source = nullptr) {
  using Total = typename R::Total;
  using V = decltype(result(std::declval<const Total&>()));
  char* to = out.data_as<char>();
  const DType dtype = out.dtype();
  const int64_t item = static_cast<int64_t>(item_size(dtype));
  const auto finish = [&](int64_t first, const Total* totals, int64_t n) {
    constexpr int64_t kPart = 256;
    V part[kPart];
    for (int64_t i = 0; i < n; i += kPart) {
      const int64_t m = std::min(kPart, n - i);
      for (int64_t j = 0; j < m; ++j) part[j] = result(totals[i + j]);
      store_block(to + (first + i) * item, dtype, 1, part, m);
    }
  };
  reduce(reduction, input, plan, finish, source);
}

}  // namespace tt::cpu
