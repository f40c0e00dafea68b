// sparse_coalesce and sparse_unique: the distinct columns of indices, and the sums of values at equal ones.
#include <algorithm>
#include <cstring>

#include "engine/device/parallel.h"
#include "kernels/common/iteration/element.h"
#include "kernels/common/sparse/index_errors.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/sparse/columns.h"

namespace tt::cpu {
namespace {

// Entries in sorted order, and where each run of equal columns starts.
struct Runs {
  Tensor order, starts;  // int64; starts has one element more than there are runs
  int64_t count = 0;
};

// Sets inverse[i] to the run of column i.
Runs runs_of(const Columns& columns, const Tensor& inverse) {
  const int64_t n = columns.count();
  Runs runs;
  runs.order = columns.sorted_order();
  runs.starts = empty({n + 1}, DType::kInt64, runs.order.device());
  const int64_t* order = runs.order.data_as<int64_t>();
  int64_t* start = runs.starts.data_as<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    if (i == 0 || columns.compare(order[i - 1], columns, order[i]) != 0) start[runs.count++] = i;
    inverse.data_as<int64_t>()[order[i]] = runs.count - 1;
  }
  start[runs.count] = n;
  return runs;
}

Tensor distinct_columns(const Columns& columns, const Runs& runs) {
  Tensor out = columns.empty_like(runs.count);
  for (int64_t i = 0; i < runs.count; ++i) {
    columns.copy_column(runs.order.data_as<int64_t>()[runs.starts.data_as<int64_t>()[i]], out, i);
  }
  return out;
}

template <typename T>
TT_CLONES void add_row(T* __restrict to, const T* __restrict from, int64_t n) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) to[j] = static_cast<T>(to[j] + from[j]);
}

// Sums the values of each run, in the order of the entries.
template <typename T>
void sum_runs(const Runs& runs, const T* values, int64_t width, T* out) {
  constexpr int64_t kGrain = 16 * 1024;  // minimum number of elements per thread
  const int64_t *order = runs.order.data_as<int64_t>(), *start = runs.starts.data_as<int64_t>();
  parallel_for(runs.count, std::max<int64_t>(1, kGrain / width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T* to = out + r * width;
      if (width == 1) {
        T sum = values[order[start[r]]];
        for (int64_t i = start[r] + 1; i < start[r + 1]; ++i) sum = static_cast<T>(sum + values[order[i]]);
        *to = sum;
        continue;
      }
      std::copy_n(values + order[start[r]] * width, width, to);
      for (int64_t i = start[r] + 1; i < start[r + 1]; ++i) add_row(to, values + order[i] * width, width);
    }
  });
}

}  // namespace

void sparse_coalesce(const Tensor& indices, const Tensor& values, absl::Span<const int64_t> size, Tensor& out_indices,
                     Tensor& out_values, Tensor& inverse) {
  const Columns columns(indices, size);
  check_values_of_columns(values, columns.count());
  inverse = empty({columns.count()}, DType::kInt64, indices.device());
  const Runs runs = runs_of(columns, inverse);
  out_indices = distinct_columns(columns, runs);
  Sizes sizes = values.sizes();
  sizes[0] = runs.count;
  out_values = empty(sizes, values.dtype(), values.device());
  if (out_values.numel() == 0) return;
  const Tensor from = as_accumulate_type(values);
  AccumulateBuffer sums(out_values);
  with_any_element(from.dtype(), [&]<typename T>(std::type_identity<T>) {
    sum_runs(runs, from.data_as<T>(), out_values.numel() / runs.count, sums.data<T>());
  });
  sums.copy_to_output();
}

void sparse_unique(const Tensor& indices, absl::Span<const int64_t> size, Tensor& out_indices, Tensor& inverse) {
  const Columns columns(indices, size);
  inverse = empty({columns.count()}, DType::kInt64, indices.device());
  out_indices = distinct_columns(columns, runs_of(columns, inverse));
}

}  // namespace tt::cpu
