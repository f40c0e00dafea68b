// unique_values and unique_rows: the distinct elements of a tensor, and the distinct rows of a matrix.
#include "kernels/common/sort/searchsorted.h"
#include "kernels/cuda/index/selection.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/radix_sort.h"
#include "kernels/cuda/sort/sorted_rows.h"

namespace tt::cuda {

namespace {

// Contiguous rows of `columns` elements, and the order in which they are compared.
struct Rows {
  Tensor elements;
  int64_t columns;
  Tensor order;
  int64_t count() const { return order.numel(); }
};

// Returns, for each row in `order`, whether it differs from the previous row. NaNs differ from each other.
template <typename T>
Tensor mark_changes(const Rows& rows) {
  Tensor marks = empty({rows.count()}, DType::kBool, rows.order.device());
  const T* x = rows.elements.data_as<T>();
  const int64_t* order = rows.order.data_as<int64_t>();
  const int64_t columns = rows.columns;
  Bool* to = marks.data_as<Bool>();
  for_each(queue_of(marks), rows.count(), [=] TT_DEVICE(int64_t i) {
    bool equal = i > 0;
    for (int64_t c = 0; equal && c < columns; ++c) equal = x[order[i] * columns + c] == x[order[i - 1] * columns + c];
    to[i] = !equal;
  });
  return marks;
}

// Writes one row of each run. `first` contains the starts of the runs, in order.
template <typename T>
void write_runs(const Rows& rows, const Tensor& first, const Tensor& output) {
  const T* x = rows.elements.data_as<T>();
  const int64_t *order = rows.order.data_as<int64_t>(), *begin = first.data_as<int64_t>();
  const int64_t columns = rows.columns;
  T* to = output.data_as<T>();
  for_each(queue_of(output), output.numel(),
           [=] TT_DEVICE(int64_t i) { to[i] = x[order[begin[i / columns]] * columns + i % columns]; });
}

// Writes the number of rows of each run to `counts`, and the index of each row's run to `inverse`.
void write_counts(const Rows& rows, const Tensor& first, const Tensor& counts, const Tensor& inverse) {
  const int64_t n = rows.count(), runs = first.numel();
  const int64_t *order = rows.order.data_as<int64_t>(), *begin = first.data_as<int64_t>();
  int64_t *lengths = counts.data_as<int64_t>(), *to = inverse.data_as<int64_t>();
  const Queue queue = queue_of(first);
  for_each(queue, runs, [=] TT_DEVICE(int64_t i) { lengths[i] = (i + 1 < runs ? begin[i + 1] : n) - begin[i]; });
  for_each(queue, n, [=] TT_DEVICE(int64_t i) { to[order[i]] = insertion_point(begin, runs, i, true) - 1; });
}

// Computes the results of unique from rows in whose order equal rows are adjacent. `inverse` must be allocated. Waits
// until the device has computed the number of runs.
void find_runs(const Rows& rows, Sizes row_sizes, Tensor& output, const Tensor& inverse, Tensor& counts) {
  const DType dtype = rows.elements.dtype();
  Tensor first;
  with_element(dtype, [&]<typename T>(std::type_identity<T>) {
    const int64_t one_by_one = 1;
    first = offsets_of_true(mark_changes<T>(rows), {&one_by_one, 1});
  });
  row_sizes.insert(row_sizes.begin(), first.numel());
  output = empty(row_sizes, dtype, rows.elements.device());
  counts = empty({first.numel()}, DType::kInt64, rows.elements.device());
  with_bits(dtype, [&]<typename T>(std::type_identity<T>) { write_runs<T>(rows, first, output); });
  write_counts(rows, first, counts, inverse);
}

template <typename Key>
Tensor in_order(const Tensor& keys, const Tensor& order) {
  Tensor out = empty(keys.sizes(), keys.dtype(), keys.device());
  const Key* from = keys.data_as<Key>();
  const int64_t* at = order.data_as<int64_t>();
  Key* to = out.data_as<Key>();
  for_each(queue_of(out), out.numel(), [=] TT_DEVICE(int64_t i) { to[i] = from[at[i]]; });
  return out;
}

// Returns the lexicographic order of a contiguous matrix's rows: sorts by each column, the last one first.
Tensor sorted_rows(const Tensor& x) {
  const int64_t n = x.size(0), columns = x.size(1);
  Tensor order = iota(queue_of(x), n);
  for (int64_t c = columns; n > 0 && c-- > 0;) {
    const Tensor column = view_of(x, Geometry{{n}, {columns}, x->offset + c});
    const RowKeys by_place = row_keys(column, DimIterator(column, 0), false);
    KeyIndexPairs items{Tensor(), order};
    with_bits(by_place.keys.dtype(),
              [&]<typename T>(std::type_identity<T>) { items.keys = in_order<T>(by_place.keys, order); });
    order = radix_sort(queue_of(x), items, by_place.bits).indices;
  }
  return order;
}

}  // namespace

void unique_values(const Tensor& input, Tensor& output, Tensor& inverse_indices, Tensor& counts) {
  const Tensor packed = contiguous(input);
  const Tensor x = view_of(packed, Geometry{{packed.numel()}, {1}, packed->offset});
  inverse_indices = empty(input.sizes(), DType::kInt64, input.device());
  const Tensor order = x.numel() > 0 ? sorted_rows(x, DimIterator(x, 0), false) : iota(queue_of(x), 0);
  find_runs({x, 1, order}, {}, output, inverse_indices, counts);
}

void unique_rows(const Tensor& input, bool consecutive, Tensor& output, Tensor& inverse_indices, Tensor& counts) {
  check(input.dim() == 2, "expected a matrix, got ", to_string(input.sizes()));
  const Tensor x = contiguous(input);
  inverse_indices = empty({x.size(0)}, DType::kInt64, input.device());
  const Tensor order = consecutive ? iota(queue_of(x), x.size(0)) : sorted_rows(x);
  find_runs({x, x.size(1), order}, {x.size(1)}, output, inverse_indices, counts);
}

}  // namespace tt::cuda
