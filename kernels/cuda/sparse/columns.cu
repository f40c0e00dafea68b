#include "kernels/cuda/sparse/columns.h"

#include <utility>

#include "kernels/cuda/index/selection.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/iteration/fill.h"
#include "kernels/cuda/launch/inclusive_scan.h"
#include "kernels/cuda/launch/radix_sort.h"
#include "kernels/cuda/sort/sorted_rows.h"
#include "kernels/cuda/sparse/row_sums.h"

namespace tt::cuda {

namespace {

// Checks a row of indices in place.
void check_row(const Queue& queue, int64_t* row, int64_t n, IndexRange range) {
  for_each(queue, n, [=] TT_DEVICE(int64_t i) { row[i] = range.checked(row[i]); });
}

}  // namespace

Columns::Columns(const Tensor& indices, SizesView size, DeviceErrorCell* cell)
    : size_(size.begin(), size.end()), dtype_(indices.dtype()) {
  check_columns(indices, size);
  indices_ = empty(indices.sizes(), DType::kInt64, indices.device());
  copy(indices, indices_);
  const int64_t n = count();
  for (int64_t d = indices.size(0); d-- > 0;) {
    check_row(queue_of(indices_), indices_.data_as<int64_t>() + d * n, n, {size_[static_cast<size_t>(d)], d, cell});
  }
  set_keys();
}

Columns::Columns(Tensor checked, SizesView size)
    : size_(size.begin(), size.end()), dtype_(DType::kInt64), indices_(std::move(checked)) {
  set_keys();
}

namespace {

// Row-major positions of columns whose indices were checked.
void write_keys(const Queue& queue, const ColumnsView& columns, int64_t* keys, int64_t d, int64_t step) {
  const int64_t* row = columns.indices + d * columns.count;
  for_each(queue, columns.count, [=] TT_DEVICE(int64_t i) { keys[i] += row[i] * step; });
}

}  // namespace

void Columns::set_keys() {
  if (product_or_overflow(size_) < 0) return;
  const Queue queue = queue_of(indices_);
  Tensor keys = empty({count()}, DType::kInt64, queue.device());
  fill_with(keys, Scalar(int64_t{0}));
  const ColumnsView columns = view();
  uint64_t step = 1;  // wraps around if a size is 0; then all indices are 0
  for (size_t d = size_.size(); d-- > 0;) {
    write_keys(queue, columns, keys.data_as<int64_t>(), static_cast<int64_t>(d), static_cast<int64_t>(step));
    step *= static_cast<uint64_t>(size_[d]);
  }
  keys_ = keys;
}

namespace {

// to[i] = from[order[i]]; null for i.
Tensor in_order(const Queue& queue, const int64_t* from, const int64_t* order, int64_t n) {
  Tensor out = empty({n}, DType::kInt64, queue.device());
  int64_t* to = out.data_as<int64_t>();
  for_each(queue, n, [=] TT_DEVICE(int64_t i) { to[i] = from[order ? order[i] : i]; });
  return out;
}

}  // namespace

Tensor Columns::sorted_order() const {
  const Queue queue = queue_of(indices_);
  const int64_t n = count();
  Tensor order = iota(queue, n);
  if (keys_) {
    const Tensor keys = in_order(queue, keys_.data_as<int64_t>(), nullptr, n);
    return radix_sort(queue, {keys, order}, bits_below(product_or_overflow(size_))).indices;
  }
  for (size_t d = size_.size(); d-- > 0;) {
    const int64_t* row = indices_.data_as<int64_t>() + static_cast<int64_t>(d) * n;
    const Tensor keys = in_order(queue, row, order.data_as<int64_t>(), n);
    order = radix_sort(queue, {keys, order}, bits_below(size_[d])).indices;
  }
  return order;
}

void Columns::report_unless_sorted(DeviceErrorCell* cell, int64_t kind) const {
  const ColumnsView columns = view();
  for_each(queue_of(indices_), count() - 1, [=] TT_DEVICE(int64_t i) {
    if (columns.compare(i, columns, i + 1) >= 0) report_error(cell, i, kind, 0);
  });
}

namespace {

template <typename T>
void write_columns(const Queue& queue, const ColumnsView& columns, int64_t n, const int64_t* from, const int64_t* to,
                   const Tensor& out) {
  const int64_t width = out.size(1);
  T* target = out.data_as<T>();
  for_each(queue, columns.dims * n, [=] TT_DEVICE(int64_t i) {
    const int64_t d = i / n, c = i % n;
    target[d * width + (to ? to[c] : c)] = static_cast<T>(columns.indices[d * columns.count + (from ? from[c] : c)]);
  });
}

}  // namespace

void Columns::copy_columns(int64_t n, const int64_t* from, const int64_t* to, const Tensor& out) const {
  with_index(dtype_, [&]<typename T>(std::type_identity<T>) {
    write_columns<T>(queue_of(indices_), view(), n, from, to, out);
  });
}

Tensor Columns::empty_like(int64_t count) const { return empty({indices_.size(0), count}, dtype_, indices_.device()); }

namespace {

struct LoadStart {
  ColumnsView columns;
  const int64_t* order;
  TT_FUNCTION int64_t operator()(int64_t i) const {
    return i == 0 || columns.compare(order[i - 1], columns, order[i]) != 0;
  }
};
struct StoreNumber {
  int64_t* number;
  TT_FUNCTION void operator()(int64_t i, int64_t starts) const { number[i] = starts; }
};

}  // namespace

Runs runs_of(const Columns& columns, const Tensor& inverse) {
  const int64_t n = columns.count();
  const Queue queue = queue_of(inverse);
  Runs runs;
  runs.order = columns.sorted_order();
  const Tensor numbers = empty({n}, DType::kInt64, inverse.device());  // of each place's run, from 1 on
  int64_t* number = numbers.data_as<int64_t>();
  const int64_t* order = runs.order.data_as<int64_t>();
  inclusive_scan(queue, n, LoadStart{columns.view(), order}, Add(), StoreNumber{number});
  if (n > 0) runs.count = value_of(view_of(numbers, Geometry{{}, {}, numbers->offset + n - 1}));
  runs.starts = empty({runs.count + 1}, DType::kInt64, inverse.device());
  int64_t *start = runs.starts.data_as<int64_t>(), *run = inverse.data_as<int64_t>();
  const int64_t count = runs.count;
  for_each(queue, n + 1, [=] TT_DEVICE(int64_t i) {
    if (i == n) {
      start[count] = n;
      return;
    }
    run[order[i]] = number[i] - 1;
    if (i == 0 || number[i - 1] != number[i]) start[number[i] - 1] = i;
  });
  return runs;
}

namespace {

void write_firsts(const Runs& runs, const Tensor& firsts) {
  const int64_t *order = runs.order.data_as<int64_t>(), *start = runs.starts.data_as<int64_t>();
  int64_t* first = firsts.data_as<int64_t>();
  for_each(queue_of(firsts), runs.count, [=] TT_DEVICE(int64_t i) { first[i] = order[start[i]]; });
}

}  // namespace

Tensor distinct_columns(const Columns& columns, const Runs& runs) {
  const Tensor firsts = empty({runs.count}, DType::kInt64, runs.starts.device());
  write_firsts(runs, firsts);
  Tensor out = columns.empty_like(runs.count);
  columns.copy_columns(runs.count, firsts.data_as<int64_t>(), nullptr, out);
  return out;
}

namespace {

// The parts of runs; a term is an element of a part.
template <typename From, typename Sum>
struct RunEntries {
  using C = Sum;
  const int64_t *starts, *order;
  int64_t width;
  const From* values;

  TT_FUNCTION EntryRow row(int64_t r) const { return {starts[r], starts[r + 1], 0}; }
  TT_DEVICE C term(const EntryRow&, int64_t i, int64_t column) const {
    return convert<C>(values[order[i] * width + column]);
  }
};

template <typename From, typename To>
void sum_runs_of(const Runs& runs, const Tensor& values, const Tensor& out) {
  const int64_t width = out.numel() / runs.count;
  const RunEntries<From, SumType<To>> entries{runs.starts.data_as<int64_t>(), runs.order.data_as<int64_t>(), width,
                                              values.data_as<From>()};
  sum_rows(queue_of(out), entries, runs.count, width, runs.order.numel(), out.data_as<To>());
}

}  // namespace

void sum_runs(const Runs& runs, const Tensor& values, const Tensor& out) {
  if (out.numel() == 0) return;
  with_any_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (!std::is_same_v<T, SumType<T>>) {
      if (values.dtype() != out.dtype()) return sum_runs_of<SumType<T>, T>(runs, values, out);
    }
    sum_runs_of<T, T>(runs, values, out);
  });
}

}  // namespace tt::cuda
