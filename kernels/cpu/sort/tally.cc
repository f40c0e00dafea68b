// Operators over sets of values: unique, bincount, searchsorted.
#include <algorithm>
#include <utility>

#include "base/mutex.h"
#include "engine/device/parallel.h"
#include "kernels/common/element.h"
#include "kernels/common/tally.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/loops/sorter.h"

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
  Tensor start = empty({n}, DType::kInt64, input.device());  // in their order
  int64_t different = 0;
  with_element(flat.dtype(), [&]<typename T>(std::type_identity<T>) {
    const T* x = flat.data_as<T>();
    KeyBuffers<T> buffers(1, n);
    buffers.make_sorter().sort(x, 1, n, false, [&](const auto* keys) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t place = index_of(keys[i]);
        const bool again = i > 0 && lower_bound_of_key(keys[i]) == lower_bound_of_key(keys[i - 1]) && !is_nan(x[place]);
        if (!again) {
          first.data_as<int64_t>()[different] = place;
          start.data_as<int64_t>()[different++] = i;
        }
        inverse_indices.data_as<int64_t>()[place] = different - 1;
      }
    });
    output = empty({different}, flat.dtype(), flat.device());
    for (int64_t i = 0; i < different; ++i) output.data_as<T>()[i] = x[first.data_as<int64_t>()[i]];
  });
  counts = empty({different}, DType::kInt64, input.device());
  const int64_t* starts = start.data_as<int64_t>();
  for (int64_t i = 0; i < different; ++i) {
    counts.data_as<int64_t>()[i] = (i + 1 < different ? starts[i + 1] : n) - starts[i];
  }
}

namespace {

constexpr int64_t kCountGrain = 32 * 1024;  // values worth a thread

std::pair<int64_t, int64_t> bounds_of_all(const int64_t* values, int64_t n) {
  Mutex mutex;  // once a thread
  std::pair<int64_t, int64_t> all(0, -1);
  parallel_for(n, kCountGrain, [&](int64_t begin, int64_t end) {
    const auto [least, most] = bounds(values + begin, end - begin);
    const MutexLock lock(mutex);
    all = {std::min(all.first, least), std::max(all.second, most)};
  });
  return all;
}

// bin[value] += weight, in order. Values may have changed since they were looked at.
template <typename T, typename Weigh>
void add_up(T* bin, int64_t bins, const int64_t* value, int64_t n, Weigh weigh) {
  for (int64_t i = 0; i < n; ++i) {
    if (static_cast<uint64_t>(value[i]) < static_cast<uint64_t>(bins)) bin[value[i]] += weigh(i);
  }
}

// A table a thread, where they are small beside what is counted; then all in one.
void count_values(const int64_t* value, int64_t n, Tensor& out) {
  const int64_t bins = out.numel(), tables = std::clamp<int64_t>(n / std::max(4 * bins, kCountGrain), 1, num_threads());
  Tensor counts = tables > 1 ? empty({tables, bins}, DType::kInt64, out.device()) : out;
  int64_t* count = counts.data_as<int64_t>();
  parallel_for(tables, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = n * t / tables, last = n * (t + 1) / tables;
      std::fill_n(count + t * bins, bins, 0);
      add_up(count + t * bins, bins, value + first, last - first, [](int64_t) { return int64_t{1}; });
    }
  });
  if (tables == 1) return;
  int64_t* sum = out.data_as<int64_t>();
  std::copy_n(count, bins, sum);
  for (int64_t t = 1; t < tables; ++t) {
    for (int64_t b = 0; b < bins; ++b) sum[b] += count[t * bins + b];
  }
}

}  // namespace

void bincount(const Tensor& input, const Tensor& weights, int64_t minlength, Tensor& out) {
  tally::check_bincount(input, weights, minlength);
  const Tensor values = in_order(input, DType::kInt64);
  const int64_t* value = values.data_as<int64_t>();
  const auto [least, most] = bounds_of_all(value, values.numel());
  const int64_t bins = tally::bins(least, most, minlength);
  const DType dtype = tally::bin_type(weights);
  out = empty({bins}, dtype, input.device());
  if (!weights) return count_values(value, values.numel(), out);
  fill_with(out, Scalar(int64_t{0}));
  const Tensor weight = in_order(weights, dtype);
  const auto weigh_all = [&]<typename T>(std::type_identity<T>) {  // in one order: sums round
    const T* w = weight.data_as<T>();
    add_up(out.data_as<T>(), bins, value, values.numel(), [=](int64_t i) { return w[i]; });
  };
  dtype == DType::kFloat32 ? weigh_all(std::type_identity<float>()) : weigh_all(std::type_identity<double>());
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
        out.data_as<int64_t>()[i] =
            tally::insertion(rows.data_as<T>() + i / a_row * n, n, values.data_as<T>()[i], right);
      }
    });
  });
}

}  // namespace tt::cpu
