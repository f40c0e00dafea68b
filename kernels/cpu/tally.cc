// Operators over sets of values: unique, bincount, searchsorted.
#include <algorithm>
#include <utility>

#include "engine/parallel.h"
#include "kernels/common/element.h"
#include "kernels/common/tally.h"
#include "kernels/cpu/clones.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/sorter.h"

namespace tt::cpu {

namespace {

// The elements in order, contiguous, as `dtype`.
Tensor in_order(const Tensor& t, DType dtype) {
  if (t.is_contiguous() && t.dtype() == dtype) return t;
  Tensor out = empty(t.sizes(), dtype, t.device());
  copy(t, out);
  return out;
}

// The least value, or 0 if that is less, and the largest, or -1.
TT_CLONES std::pair<int64_t, int64_t> bounds(const int64_t* values, int64_t n) {
  int64_t least = 0, most = -1;
  for (int64_t i = 0; i < n; ++i) {
    least = values[i] < least ? values[i] : least;
    most = values[i] > most ? values[i] : most;
  }
  return {least, most};
}

}  // namespace

// NaNs differ from each other, so each has a place of its own.
void unique_values(const Tensor& input, Tensor& output, Tensor& inverse_indices, Tensor& counts) {
  const Tensor flat = in_order(input, input.dtype());
  const int64_t n = flat.numel();
  inverse_indices = empty(input.sizes(), DType::kInt64, input.device());
  Tensor first = empty({n}, DType::kInt64, input.device());  // of each different value
  Tensor often = empty({n}, DType::kInt64, input.device());
  int64_t different = 0;
  with_element(flat.dtype(), [&]<typename T>(std::type_identity<T>) {
    const T* x = flat.data_as<T>();
    KeyRoom<T> room(1, n);
    RowSorter<T> sorter = room.take();
    const auto* keys = sorter.sort(x, 1, n, false);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t place = place_of(keys[i]);
      const bool again = i > 0 && first_of_key(keys[i]) == first_of_key(keys[i - 1]) && !is_nan(x[place]);
      if (!again) {
        first.data_as<int64_t>()[different] = place;
        often.data_as<int64_t>()[different++] = 0;
      }
      ++often.data_as<int64_t>()[different - 1];
      inverse_indices.data_as<int64_t>()[place] = different - 1;
    }
    output = empty({different}, flat.dtype(), flat.device());
    for (int64_t i = 0; i < different; ++i) output.data_as<T>()[i] = x[first.data_as<int64_t>()[i]];
  });
  counts = empty({different}, DType::kInt64, input.device());
  std::copy_n(often.data_as<int64_t>(), different, counts.data_as<int64_t>());
}

void bincount(const Tensor& input, const Tensor& weights, int64_t minlength, Tensor& out) {
  tally::check_bincount(input, weights, minlength);
  const Tensor values = in_order(input, DType::kInt64);
  const int64_t* value = values.data_as<int64_t>();
  const auto [least, most] = bounds(value, values.numel());
  const int64_t bins = tally::bins(least, most, minlength);
  const DType dtype = tally::bin_type(weights);
  out = empty({bins}, dtype, input.device());
  fill_with(out, Scalar(int64_t{0}));
  const Tensor weight = weights ? in_order(weights, dtype) : Tensor();
  auto add_up = [&]<typename T>(std::type_identity<T>) {
    T* bin = out.data_as<T>();
    const T* weigh = weight ? weight.data_as<T>() : nullptr;
    for (int64_t i = 0; i < values.numel(); ++i) {
      if (value[i] < bins) bin[value[i]] += weigh ? weigh[i] : T(1);
    }
  };
  if (dtype == DType::kInt64) return add_up(std::type_identity<int64_t>());
  if (dtype == DType::kFloat32) return add_up(std::type_identity<float>());
  add_up(std::type_identity<double>());
}

void searchsorted(const Tensor& sorted_sequence, const Tensor& input, bool right, Tensor& out) {
  if (input.numel() == 0) return;
  const DType dtype = promote(sorted_sequence.dtype(), input.dtype());
  const Tensor rows = in_order(sorted_sequence, dtype), values = in_order(input, dtype);
  const int64_t n = rows.size(-1);
  // One row for all values, or a row for each of values' rows.
  const int64_t a_row = rows.dim() == 1 ? values.numel() : values.size(-1);
  with_element(dtype, [&]<typename T>(std::type_identity<T>) {
    parallel_for(values.numel(), 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        out.data_as<int64_t>()[i] = tally::insertion(rows.data_as<T>() + i / a_row * n, n, values.data_as<T>()[i], right);
      }
    });
  });
}

}  // namespace tt::cpu
