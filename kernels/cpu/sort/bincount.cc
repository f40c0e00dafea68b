// bincount: the number of occurrences, or the sum of weights, of each integer value.
#include "kernels/common/sort/bincount.h"

#include <utility>

#include "base/mutex.h"
#include "engine/device/parallel.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {

namespace {

constexpr int64_t kCountGrain = 32 * 1024;  // minimum number of values per thread

// Returns the least value, or 0 if none is negative, and the largest value, or -1 if none is greater.
TT_CLONES std::pair<int64_t, int64_t> bounds(const int64_t* values, int64_t n) {
  int64_t least = 0, most = -1;
  for (int64_t i = 0; i < n; ++i) {
    least = values[i] < least ? values[i] : least;
    most = values[i] > most ? values[i] : most;
  }
  return {least, most};
}

std::pair<int64_t, int64_t> bounds_of_all(const int64_t* values, int64_t n) {
  Mutex mutex;  // locked once per block
  std::pair<int64_t, int64_t> all(0, -1);
  parallel_for(n, kCountGrain, [&](int64_t begin, int64_t end) {
    const auto [least, most] = bounds(values + begin, end - begin);
    const MutexLock lock(mutex);
    all = {std::min(all.first, least), std::max(all.second, most)};
  });
  return all;
}

// bin[value] += weight, in order. Checks each value again: another session may have written it since bounds_of_all().
template <typename T, typename Weigh>
void accumulate_bins(T* bin, int64_t bins, const int64_t* value, int64_t n, Weigh weigh) {
  for (int64_t i = 0; i < n; ++i) {
    if (static_cast<uint64_t>(value[i]) < static_cast<uint64_t>(bins)) bin[value[i]] += weigh(i);
  }
}

// Counts in one table per thread if the tables are small compared with the input, and then adds the tables.
void count_values(const int64_t* value, int64_t n, Tensor& out) {
  const int64_t bins = out.numel(), tables = std::clamp<int64_t>(n / std::max(4 * bins, kCountGrain), 1, num_threads());
  Tensor counts = tables > 1 ? empty({tables, bins}, DType::kInt64, out.device()) : out;
  int64_t* count = counts.data_as<int64_t>();
  parallel_for(tables, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = n * t / tables, last = n * (t + 1) / tables;
      std::fill_n(count + t * bins, bins, 0);
      accumulate_bins(count + t * bins, bins, value + first, last - first, [](int64_t) { return int64_t{1}; });
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
  check_bincount(input, weights, minlength);
  const Tensor values = contiguous_as(input, DType::kInt64);
  const int64_t* value = values.data_as<int64_t>();
  const auto [least, most] = bounds_of_all(value, values.numel());
  const int64_t bins = bin_count(least, most, minlength);
  const DType dtype = bin_dtype(weights);
  out = empty({bins}, dtype, input.device());
  if (!weights) return count_values(value, values.numel(), out);
  fill_with(out, Scalar(int64_t{0}));
  const Tensor weight = contiguous_as(weights, dtype);
  const auto weigh_all = [&]<typename T>(std::type_identity<T>) {  // in one thread, so that rounding does not vary
    const T* w = weight.data_as<T>();
    accumulate_bins(out.data_as<T>(), bins, value, values.numel(), [=](int64_t i) { return w[i]; });
  };
  dtype == DType::kFloat32 ? weigh_all(std::type_identity<float>()) : weigh_all(std::type_identity<double>());
}

}  // namespace tt::cpu
