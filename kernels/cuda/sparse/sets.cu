// sparse_union and sparse_intersection of two sorted sets of columns.
#include "kernels/cuda/index/selection.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/inclusive_scan.h"
#include "kernels/cuda/sparse/columns.h"

namespace tt::cuda {
namespace {

Tensor positions(int64_t count, Device device) { return empty({count}, DType::kInt64, device); }

// Two sets. Reports an error unless they are sorted; the results are then arbitrary positions within the sets.
struct Sets {
  Columns a, b;

  Sets(const Tensor& input, const Tensor& other, SizesView size, DeviceErrorCell* cell)
      : a(input, size, cell), b(other, size, cell) {
    a.report_unless_sorted(cell, kNotASet);
    b.report_unless_sorted(cell, kNotASet);
  }
};

// Finds the columns of `from` in `in`: the number of columns before each, and whether there is an equal one.
struct Search {
  ColumnsView from, in;
  TT_FUNCTION int64_t place(int64_t i) const { return in.insertion_point(from, i); }
  TT_FUNCTION bool finds(int64_t i, int64_t place) const { return in.has(place, from, i); }
};

// Counts the columns that are found, or those that are not.
struct LoadFound {
  Search search;
  bool counted;
  TT_FUNCTION int64_t operator()(int64_t i) const { return search.finds(i, search.place(i)) == counted; }
};
struct StoreCount {
  int64_t* counts;  // counts[0] is 0
  TT_FUNCTION void operator()(int64_t i, int64_t count) const { counts[i + 1] = count; }
};

// counts[i]: how many of the first i columns of `search.from` are found (or not), for i up to their number.
Tensor count_found(const Queue& queue, const Search& search, bool counted) {
  const int64_t n = search.from.count;
  Tensor counts = positions(n + 1, queue.device());
  queue.fill(counts.data(), 0, sizeof(int64_t));
  inclusive_scan(queue, n, LoadFound{search, counted}, Add(), StoreCount{counts.data_as<int64_t>()});
  return counts;
}

// Waits for the last count.
int64_t total_of(const Tensor& counts) {
  return value_of(view_of(counts, Geometry{{}, {}, counts->offset + counts.numel() - 1}));
}

void place_in_union(const Queue& queue, const Search& a_in_b, const Search& b_in_a, const Tensor& counts,
                    const Tensor& position, const Tensor& other_position) {
  const int64_t* only_b = counts.data_as<int64_t>();
  int64_t *of_a = position.data_as<int64_t>(), *of_b = other_position.data_as<int64_t>();
  for_each(queue, a_in_b.from.count, [=] TT_DEVICE(int64_t i) { of_a[i] = i + only_b[a_in_b.place(i)]; });
  for_each(queue, b_in_a.from.count, [=] TT_DEVICE(int64_t i) { of_b[i] = b_in_a.place(i) + only_b[i]; });
}

void write_found(const Queue& queue, const Search& search, const Tensor& counts, const Tensor& position,
                 const Tensor& other_position) {
  const int64_t* count = counts.data_as<int64_t>();
  int64_t *to = position.data_as<int64_t>(), *other = other_position.data_as<int64_t>();
  for_each(queue, search.from.count, [=] TT_DEVICE(int64_t i) {
    if (count[i] == count[i + 1]) return;
    to[count[i]] = i;
    other[count[i]] = search.place(i);
  });
}

}  // namespace

void sparse_union(const Tensor& input, const Tensor& other, absl::Span<const int64_t> size, Tensor& indices,
                  Tensor& position, Tensor& other_position) {
  check_index_dtypes({&input, &other});
  const Queue queue = queue_of(input);
  DeviceErrorCell* cell = open_index_cell(queue);
  const Sets sets(input, other, size, cell);
  const Columns &a = sets.a, &b = sets.b;
  const Search b_in_a{b.view(), a.view()};
  const Tensor counts = count_found(queue, b_in_a, false);
  position = positions(a.count(), queue.device());
  other_position = positions(b.count(), queue.device());
  place_in_union(queue, {a.view(), b.view()}, b_in_a, counts, position, other_position);
  indices = a.empty_like(a.count() + total_of(counts));
  throw_reported(cell);
  a.copy_columns(a.count(), nullptr, position.data_as<int64_t>(), indices);
  b.copy_columns(b.count(), nullptr, other_position.data_as<int64_t>(), indices);
}

void sparse_intersection(const Tensor& input, const Tensor& other, absl::Span<const int64_t> size, Tensor& position,
                         Tensor& other_position) {
  check_index_dtypes({&input, &other});
  const Queue queue = queue_of(input);
  DeviceErrorCell* cell = open_index_cell(queue);
  const Sets sets(input, other, size, cell);
  const Search search{sets.a.view(), sets.b.view()};
  const Tensor counts = count_found(queue, search, true);
  const int64_t count = total_of(counts);
  throw_reported(cell);
  position = positions(count, queue.device());
  other_position = positions(count, queue.device());
  write_found(queue, search, counts, position, other_position);
}

}  // namespace tt::cuda
