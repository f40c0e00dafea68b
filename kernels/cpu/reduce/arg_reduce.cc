// max and min along a dimension, argmax and argmin.
#include <type_traits>

#include "kernels/cpu/iteration/complex_as_real.h"
#include "kernels/cpu/loops/reduce_extremum.h"
#include "kernels/cpu/loops/reduce_into.h"

namespace tt::cpu {

namespace {

template <typename T, bool kMax>
void find_as(const Tensor& input, const ReducePlan& plan, Tensor* values, Tensor& indices) {
  const DType dtype = input.dtype();
  const int64_t item = static_cast<int64_t>(item_size(dtype));
  reduce(Extremum<T, kMax>(), input, plan, [&](int64_t first, const ExtremumTotal<T>* found, int64_t n) {
    for (int64_t i = 0; i < n; ++i) indices.data_as<int64_t>()[first + i] = found[i].position;
    if (!values) return;
    T best[kTileColumns];
    for (int64_t i = 0; i < n; ++i) best[i] = found[i].value;
    store_block(values->data_as<char>() + first * item, dtype, 1, best, n);
  });
}

// Writes the position of each extremum to `indices` and, if `values` is not null, the extremum to `values`.
template <bool kMax>
void find(const Tensor& given, const std::optional<int64_t>& dim, Tensor* values, Tensor& indices) {
  const Tensor input = ordered_bits(given);
  const ReducePlan plan = arg_reduce_plan(input, dim);
  if (input.dtype() == DType::kBool || input.dtype() == DType::kUInt8) {
    return find_as<uint8_t, kMax>(input, plan, values, indices);
  }
  with_reduction_type(input.dtype(),
                      [&]<typename T>(std::type_identity<T>) { find_as<T, kMax>(input, plan, values, indices); });
  if (values) restore_bits(*values);
}

}  // namespace

void find_extrema(bool largest, const Tensor& input, const std::optional<int64_t>& dim, Tensor* values,
                  Tensor& indices) {
  largest ? find<true>(input, dim, values, indices) : find<false>(input, dim, values, indices);
}

}  // namespace tt::cpu
