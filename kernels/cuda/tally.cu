// Operators over sets of values: unique, bincount, searchsorted.
#include "kernels/common/tally.h"

#include "kernels/cuda/access.h"
#include "kernels/cuda/atomic.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/fill.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/selection.h"
#include "kernels/cuda/sorted_lines.h"

namespace tt::cuda {

namespace {

Tensor flat(const Tensor& t) {
  const Tensor packed = contiguous(t);
  return view_of(packed, Geometry{{packed.numel()}, {1}, packed->offset});
}

// Whether each element, in order, differs from the one before it. NaNs differ from each other.
template <typename T>
Tensor mark_changes(const Tensor& x, const Tensor& places) {
  Tensor marks = empty(x.sizes(), DType::kBool, x.device());
  const T* from = x.data_as<T>();
  const int64_t* sorted = places.data_as<int64_t>();
  Bool* to = marks.data_as<Bool>();
  for_each(queue_of(x), x.numel(),
           [=] TT_DEVICE(int64_t i) { to[i] = i == 0 || !(from[sorted[i]] == from[sorted[i - 1]]); });
  return marks;
}

// Of the runs that begin at `first` (among `places`): their values and lengths.
template <typename T>
void write_runs(const Tensor& x, const Tensor& places, const Tensor& first, const Tensor& output,
                const Tensor& counts) {
  const int64_t n = x.numel(), runs = first.numel();
  const T* from = x.data_as<T>();
  const int64_t *sorted = places.data_as<int64_t>(), *begin = first.data_as<int64_t>();
  T* to = output.data_as<T>();
  int64_t* lengths = counts.data_as<int64_t>();
  for_each(queue_of(x), runs, [=] TT_DEVICE(int64_t i) {
    to[i] = from[sorted[begin[i]]];
    lengths[i] = (i + 1 < runs ? begin[i + 1] : n) - begin[i];
  });
}

// Of each element the run that it is in.
void write_inverse(const Tensor& places, const Tensor& first, const Tensor& inverse) {
  const int64_t runs = first.numel();
  const int64_t *sorted = places.data_as<int64_t>(), *begin = first.data_as<int64_t>();
  int64_t* to = inverse.data_as<int64_t>();
  for_each(queue_of(places), places.numel(),
           [=] TT_DEVICE(int64_t i) { to[sorted[i]] = tally::insertion(begin, runs, i, true) - 1; });
}

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

void unique_values(const Tensor& input, Tensor& output, Tensor& inverse_indices, Tensor& counts) {
  const Tensor x = flat(input);
  inverse_indices = empty(input.sizes(), DType::kInt64, input.device());
  Tensor places = empty({0}, DType::kInt64, input.device()), first = places;
  if (x.numel() > 0) {
    places = sorted_lines(x, Lines(x, 0), false);
    with_element(x.dtype(), [&]<typename T>(std::type_identity<T>) {
      const int64_t one_by_one = 1;
      first = offsets_of_true(mark_changes<T>(x, places), {&one_by_one, 1});
    });
  }
  output = empty({first.numel()}, x.dtype(), x.device());
  counts = empty({first.numel()}, DType::kInt64, x.device());
  with_bits(x.dtype(), [&]<typename T>(std::type_identity<T>) { write_runs<T>(x, places, first, output, counts); });
  write_inverse(places, first, inverse_indices);
}

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
