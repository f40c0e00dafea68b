// max and min along a dimension, argmax and argmin.
#include "kernels/common/reduce/arg_reduce.h"

#include "kernels/common/math/scalar_math.h"
#include "kernels/cuda/reduce/ordered_bits.h"
#include "kernels/cuda/reduce/reduce.h"

namespace tt::cuda {

namespace {

template <typename T, bool kMax>
struct Search {
  using Value = T;
  using Total = ExtremumTotal<T>;
  using Part = ExtremumTotal<T>;
  Access values;  // null if values are not requested
  int64_t* indices;

  TT_FUNCTION ExtremumTotal<T> begin() const { return {T(0), -1}; }
  TT_FUNCTION void add(ExtremumTotal<T>& part, T x, int64_t position) const { part = merge(part, {x, position}); }
  TT_FUNCTION void flush(ExtremumTotal<T>&) const {}
  TT_FUNCTION ExtremumTotal<T> end(const ExtremumTotal<T>& part) const { return part; }
  TT_FUNCTION ExtremumTotal<T> merge(const ExtremumTotal<T>& a, const ExtremumTotal<T>& b) const {
    if (a.position < 0 || b.position < 0) return a.position < 0 ? b : a;
    const bool beats =
        (kMax ? b.value > a.value : b.value < a.value) || (math::isnan(b.value) && !math::isnan(a.value));
    const bool equal = b.value == a.value || (math::isnan(b.value) && math::isnan(a.value));
    return beats || (equal && b.position < a.position) ? b : a;
  }
  TT_FUNCTION void store(int64_t output, const ExtremumTotal<T>& total) const {
    indices[output] = total.position;
    if (values.data) values.store(output, total.value);
  }
};

// Writes the position of each extremum, and, if `values` is not null, the extremum.
template <bool kMax>
void find(const Tensor& input, const std::optional<int64_t>& dim, Tensor* values, Tensor& indices) {
  const Tensor x = ordered_bits(input);
  const ReducePlan plan = arg_reduce_plan(x, dim);
  const Access best = values ? Access(*values) : Access(nullptr, input.dtype());
  with_reduction_type(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    reduce(Search<T, kMax>{best, indices.data_as<int64_t>()}, x, plan);
  });
  if (values) restore_bits(*values);
}

}  // namespace

void find_extrema(bool largest, const Tensor& input, const std::optional<int64_t>& dim, Tensor* values,
                  Tensor& indices) {
  largest ? find<true>(input, dim, values, indices) : find<false>(input, dim, values, indices);
}

}  // namespace tt::cuda
