// Operators that count into bins, and look for them.
#include "kernels/common/sort/tally.h"

#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/iteration/fill.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/access.h"
#include "kernels/cuda/launch/atomic.h"
#include "kernels/cuda/index/selection.h"

namespace tt::cuda {

namespace {

// bin[value[i]] += weight[i], or 1.
template <typename T>
void add_up(const Tensor& values, const Tensor& weights, const Tensor& out) {
  const int64_t* value = values.data_as<int64_t>();
  const T* weight = weights ? weights.data_as<T>() : nullptr;
  T* bin = out.data_as<T>();
  for_each(queue_of(out), values.numel(),
           [=] TT_DEVICE(int64_t i) { atomic_add(bin + value[i], weight ? weight[i] : T(1)); });
}

int64_t smallest(const Tensor& values) {
  Tensor result = empty({}, DType::kInt64, values.device());
  amin(values, std::nullopt, false, result);
  return value_of(result);
}
int64_t largest(const Tensor& values) {
  Tensor result = empty({}, DType::kInt64, values.device());
  amax(values, std::nullopt, false, result);
  return value_of(result);
}

}  // namespace

void bincount(const Tensor& input, const Tensor& weights, int64_t minlength, Tensor& out) {
  tally::check_bincount(input, weights, minlength);
  const Tensor values = contiguous_as(input, DType::kInt64);
  const bool none = values.numel() == 0;
  const int64_t bins = tally::bins(none ? 0 : smallest(values), none ? -1 : largest(values), minlength);
  const DType dtype = tally::bin_type(weights);
  out = empty({bins}, dtype, input.device());
  fill_with(out, Scalar(int64_t{0}));
  const Tensor weight = weights ? contiguous_as(weights, dtype) : Tensor();
  if (dtype == DType::kInt64) return add_up<int64_t>(values, weight, out);
  if (dtype == DType::kFloat32) return add_up<float>(values, weight, out);
  add_up<double>(values, weight, out);
}

namespace {

template <typename T>
void search(const Tensor& rows, const Tensor& values, bool right, const Tensor& out) {
  const int64_t n = rows.size(-1);
  // One row for all values, or a row for each of values' rows.
  const int64_t a_row = rows.dim() == 1 ? values.numel() : values.size(-1);
  const T *row = rows.data_as<T>(), *value = values.data_as<T>();
  int64_t* to = out.data_as<int64_t>();
  for_each(queue_of(out), values.numel(),
           [=] TT_DEVICE(int64_t i) { to[i] = tally::insertion(row + i / a_row * n, n, value[i], right); });
}

}  // namespace

void searchsorted(const Tensor& sorted_sequence, const Tensor& input, bool right, Tensor& out) {
  if (input.numel() == 0) return;
  const DType dtype = promote(sorted_sequence.dtype(), input.dtype());
  const Tensor rows = contiguous_as(sorted_sequence, dtype), values = contiguous_as(input, dtype);
  with_element(dtype, [&]<typename T>(std::type_identity<T>) { search<T>(rows, values, right, out); });
}

}  // namespace tt::cuda
