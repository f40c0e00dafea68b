// Operators that sort the elements along a dimension.
#include "kernels/common/iteration/element.h"
#include "kernels/common/sort/median_of_none.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/sort/ranked_rows.h"

namespace tt::cuda {

namespace {

// The first `held` elements of each line, in sorted order. `numbers` has `held` numbers per line; each number, modulo
// the line's length, is an element's position in the line.
struct Order {
  Tensor numbers;
  int64_t held;
};

// Whether to use one group per line: there are enough lines to keep the device busy, or the work is small.
bool is_line_by_line(const DimIterator& lines) { return lines.count() >= 32 || lines.length() <= 64 * 1024; }

// Returns the order of at least the first `count` elements.
Order order_of(const Tensor& input, const DimIterator& lines, int64_t count, bool descending) {
  constexpr int64_t kFew = 1024;
  if (count <= kFew && 4 * count <= lines.length() && is_line_by_line(lines)) {
    return {first_of_rows(input, lines, count, descending), count};
  }
  return {sorted_rows(input, lines, descending), lines.length()};
}

// Writes the first values.size(dim) elements of each line in sorted order.
template <typename T>
void write_sorted(const Tensor& input, const DimIterator& lines, const Order& order, int64_t dim, const Tensor& values,
                  const Tensor& indices) {
  const DimIterator out(values, dim);  // `indices` has the same layout
  const int64_t* numbers = order.numbers.data_as<int64_t>();
  const int64_t held = order.held;
  const T* from = input.data_as<T>();
  T* to = values.data_as<T>();
  int64_t* where = indices.data_as<int64_t>();
  for_each(queue_of(values), values.numel(), [=] TT_DEVICE(int64_t i) {
    const int64_t line = i / out.length(), rank = i % out.length();
    const int64_t position = numbers[line * held + rank] % lines.length();
    const int64_t at = out.start(line) + rank * out.stride();
    to[at] = from[lines.start(line) + position * lines.stride()];
    where[at] = position;
  });
}

void sort_first(const Tensor& input, int64_t dim, bool descending, const Tensor& values, const Tensor& indices) {
  if (values.numel() == 0) return;
  const DimIterator lines(input, dim);
  const Order order = order_of(input, lines, DimIterator(values, dim).length(), descending);
  with_bits(input.dtype(),
            [&]<typename T>(std::type_identity<T>) { write_sorted<T>(input, lines, order, dim, values, indices); });
}

struct Earlier {
  TT_FUNCTION int64_t operator()(int64_t a, int64_t b) const { return b < a ? b : a; }
};

// Changes `chosen` to select a line's first NaN if the line contains NaN.
template <typename T>
void prefer_nan(const Tensor& input, const DimIterator& lines, const RowSelection& chosen) {
  const T* x = input.data_as<T>();
  int64_t* numbers = chosen.numbers.data_as<int64_t>();
  const int64_t step = chosen.step, at = chosen.first;
  for_each_group(queue_of(input), lines.count(), lines.length(), [=] TT_DEVICE(Group & group) {
    const int64_t start = lines.start(group.index());
    int64_t first = lines.length();
    for (int64_t i = group.rank(); i < first; i += group.size()) {
      if (is_nan(x[start + i * lines.stride()])) first = i;
    }
    first = group.reduce(first, Earlier());
    if (group.rank() == 0 && first < lines.length()) numbers[group.index() * step + at] = first;
  });
}

// Writes each line's element of rank `rank` (from 0) or, if `nan_wins` and the line contains NaN, its first NaN.
// `values` and `indices` have one element per line, in order.
void select_rank(const Tensor& input, int64_t dim, bool nan_wins, int64_t rank, const Tensor& values,
                 const Tensor& indices) {
  if (values.numel() == 0) return;
  const DimIterator lines(input, dim);
  const RowSelection chosen = is_line_by_line(lines)
                                  ? RowSelection{ranked_rows(input, lines, rank, false), 1, 0}
                                  : RowSelection{sorted_rows(input, lines, false), lines.length(), rank};
  if (nan_wins && is_floating(input.dtype())) {
    with_element(input.dtype(), [&]<typename T>(std::type_identity<T>) {
      if constexpr (!std::is_integral_v<T> && !std::is_same_v<T, Bool>) prefer_nan<T>(input, lines, chosen);
    });
  }
  gather_selected(input, lines, chosen, values, indices);
}

}  // namespace

void sort(const Tensor& input, int64_t dim, bool descending, Tensor& values, Tensor& indices) {
  sort_first(input, dim, descending, values, indices);
}

void topk(const Tensor& input, int64_t, int64_t dim, bool largest, bool, Tensor& values, Tensor& indices) {
  sort_first(input, dim, largest, values, indices);
}

void kthvalue(const Tensor& input, int64_t k, int64_t dim, bool, Tensor& values, Tensor& indices) {
  select_rank(input, dim, false, k - 1, values, indices);
}

void median_dim(const Tensor& input, int64_t dim, bool, Tensor& values, Tensor& indices) {
  select_rank(input, dim, true, (DimIterator(input, dim).length() - 1) / 2, values, indices);
}

void median(const Tensor& input, Tensor& out) {
  if (input.numel() == 0) return fill(out, median_of_none(out.dtype()), out);
  const Tensor line =
      view_of(contiguous(input), Geometry{{input.numel()}, {1}, input.is_contiguous() ? input->offset : 0});
  const Tensor position = empty({}, DType::kInt64, input.device());
  select_rank(line, 0, true, (input.numel() - 1) / 2, out, position);
}

}  // namespace tt::cuda
