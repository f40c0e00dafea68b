// Reductions that say where: max and min along a dimension, argmax and argmin.
#include "kernels/common/scalar_math.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/reduce/ordered_bits.h"
#include "kernels/cuda/reduce/reduce.h"

namespace tt::cuda {

namespace {

template <typename T>
struct ExtremumTotal {
  T value;
  int64_t position;  // -1: nothing yet
};

// The first of equal elements wins; a NaN wins against everything, the first NaN against later. Runs over a plan of
// Order::kLogical, so that positions are those of the user's tensor.
template <typename T, bool kMax>
struct Search {
  using Value = T;
  using Total = ExtremumTotal<T>;
  using Part = ExtremumTotal<T>;
  Access values;  // null: not asked for
  int64_t* indices;

  TT_FUNCTION ExtremumTotal<T> begin() const { return {T(0), -1}; }
  TT_FUNCTION void take(ExtremumTotal<T>& part, T x, int64_t position) const { part = merge(part, {x, position}); }
  TT_FUNCTION void flush(ExtremumTotal<T>&) const {}
  TT_FUNCTION ExtremumTotal<T> end(const ExtremumTotal<T>& part) const { return part; }
  TT_FUNCTION ExtremumTotal<T> merge(const ExtremumTotal<T>& a, const ExtremumTotal<T>& b) const {
    if (a.position < 0 || b.position < 0) return a.position < 0 ? b : a;
    const bool beats =
        (kMax ? b.value > a.value : b.value < a.value) || (math::isnan(b.value) && !math::isnan(a.value));
    const bool equal = b.value == a.value || (math::isnan(b.value) && math::isnan(a.value));
    return beats || (equal && b.position < a.position) ? b : a;
  }
  TT_FUNCTION void put(int64_t output, const ExtremumTotal<T>& total) const {
    indices[output] = total.position;
    if (values.data) values.store(output, total.value);
  }
};

template <bool kMax>
void find(const Tensor& input, const std::optional<int64_t>& dim, const Tensor* values, Tensor& indices) {
  const Tensor x = ordered_bits(input);
  const ReducePlan plan(x, dim ? absl::MakeConstSpan(&*dim, 1) : absl::Span<const int64_t>(), Order::kLogical);
  const Access best = values ? Access(*values) : Access(nullptr, input.dtype());
  with_reduced(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    reduce(Search<T, kMax>{best, indices.data_as<int64_t>()}, x, plan);
  });
  if (values) restore_bits(*values);
}

}  // namespace

void max_dim(const Tensor& input, int64_t dim, bool, Tensor& values, Tensor& indices) {
  find<true>(input, dim, &values, indices);
}

void min_dim(const Tensor& input, int64_t dim, bool, Tensor& values, Tensor& indices) {
  find<false>(input, dim, &values, indices);
}

void argmax(const Tensor& input, std::optional<int64_t> dim, bool, Tensor& out) {
  find<true>(input, dim, nullptr, out);
}

void argmin(const Tensor& input, std::optional<int64_t> dim, bool, Tensor& out) {
  find<false>(input, dim, nullptr, out);
}

}  // namespace tt::cuda
