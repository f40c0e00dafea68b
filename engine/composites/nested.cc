#include "engine/composites/nested.h"

#include "engine/dispatch/ops.h"

namespace tt::composites {

Tensor jagged_softmax_of(const Tensor& values, const Tensor& offsets, const Tensor& lengths, bool log) {
  const auto expand = [&](const Tensor& rows) { return ops::jagged_expand(rows, offsets, lengths, values.size(0)); };
  const Tensor most = ops::detach(ops::jagged_reduce(values, offsets, lengths, "amax"));
  const Tensor shifted = ops::sub(values, expand(most)), shares = ops::exp(shifted);
  const Tensor sums = expand(ops::jagged_reduce(shares, offsets, lengths, "sum"));
  return log ? ops::sub(shifted, ops::log(sums)) : ops::true_divide(shares, sums);
}

}  // namespace tt::composites
