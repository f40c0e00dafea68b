// Operators that sort the elements along a dimension. A line is a one-dimensional slice along this dimension.
#include <algorithm>

#include "engine/schema/error.h"
#include "kernels/common/sort/median_of_none.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/iteration/dim_iterator.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/sorter.h"

namespace tt::cpu {

namespace {

void check_sortable(int64_t length) {
  check(length < int64_t{1} << 32, "cannot sort more than 2^32 - 1 elements, got ", length);
}

// Checks that lines of this length can be sorted, and calls f with the element type.
template <typename F>
void with_sortable(DType dtype, int64_t length, F f) {
  check_sortable(length);
  with_element(dtype, f);
}

// Writes the results of a line: its first elements in sorted order, and their indices.
struct Results {
  const DimIterator<3>& lines;  // iterates over the input, the values and the indices
  void* values;
  int64_t* indices;

  // Writes the elements of the first `count` keys. The line starts at x + at[0].
  template <typename T, typename K>
  void write(const std::array<int64_t, 3>& at, const T* x, const K* keys, int64_t count) const {
    T* to = static_cast<T*>(values) + at[1];
    int64_t* places = indices + at[2];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = index_of(keys[i]);
      to[i * lines.stride(1)] = x[at[0] + index * lines.stride(0)];
      places[i * lines.stride(2)] = index;
    }
  }
};

// Writes the element of rank `rank` (from 0) of each line, or (if `nan_wins`) its first NaN, and its index. `values`
// and `indices` hold one element per line, in order.
void select_rank(const Tensor& input, int64_t dim, bool nan_wins, int64_t rank, Tensor& values, Tensor& indices) {
  const DimIterator<1> lines({&input}, dim);
  with_sortable(input.dtype(), lines.length(0), [&]<typename T>(std::type_identity<T>) {
    KeyBuffers<T> buffers(lines.count(), lines.length(0));
    lines.run([&](auto each) {
      RowSorter<T> sorter = buffers.make_sorter();
      each([&](const std::array<int64_t, 1>& at, int64_t line) {
        const T* x = input.data_as<T>() + at[0];
        const int64_t n = lines.length(0), stride = lines.stride(0);
        const bool few = !nan_wins && rank < RowSorter<T>::kFew;
        const int64_t index = few ? index_of(sorter.sort_few(x, stride, n, rank + 1, false)[rank])
                                  : sorter.index_of_rank(x, stride, n, rank, nan_wins);
        values.data_as<T>()[line] = x[index * stride];
        indices.data_as<int64_t>()[line] = index;
      });
    });
  });
}

}  // namespace

void sort(const Tensor& input, int64_t dim, bool descending, Tensor& values, Tensor& indices) {
  if (input.numel() == 0) return;
  const DimIterator<3> lines({&input, &values, &indices}, dim);
  const Results results{lines, values.data(), indices.data_as<int64_t>()};
  with_sortable(input.dtype(), lines.length(0), [&]<typename T>(std::type_identity<T>) {
    const T* x = input.data_as<T>();
    KeyBuffers<T> buffers(lines.count(), lines.length(0));
    lines.run([&](auto each) {
      RowSorter<T> sorter = buffers.make_sorter();
      each([&](const std::array<int64_t, 3>& at, int64_t) {
        sorter.sort(x + at[0], lines.stride(0), lines.length(0), descending,
                    [&](const auto* keys) { results.write(at, x, keys, lines.length(0)); });
      });
    });
  });
}

void topk(const Tensor& input, int64_t k, int64_t dim, bool largest, bool, Tensor& values, Tensor& indices) {
  if (input.numel() == 0 || values.numel() == 0) return;
  if (input.dim() == 0) k = 1;  // the result has the value also for k = 0
  const DimIterator<3> lines({&input, &values, &indices}, dim);
  const Results results{lines, values.data(), indices.data_as<int64_t>()};
  const int64_t n = lines.length(0);
  with_sortable(input.dtype(), n, [&]<typename T>(std::type_identity<T>) {
    const T* x = input.data_as<T>();
    const bool few = RowSorter<T>::first_capacity(k) < n;
    KeyBuffers<T> buffers(lines.count(), few ? RowSorter<T>::first_capacity(k) : n);
    lines.run([&](auto each) {
      RowSorter<T> sorter = buffers.make_sorter();
      each([&](const std::array<int64_t, 3>& at, int64_t) {
        const T* line = x + at[0];
        const auto write = [&](const auto* keys) { results.write(at, x, keys, k); };
        if (k <= RowSorter<T>::kFew) return write(sorter.sort_few(line, lines.stride(0), n, k, largest));
        if (few) return write(sorter.sort_first(line, lines.stride(0), n, k, largest));
        sorter.sort(line, lines.stride(0), n, largest, write);
      });
    });
  });
}

void kthvalue(const Tensor& input, int64_t k, int64_t dim, bool, Tensor& values, Tensor& indices) {
  if (values.numel() == 0) return;
  select_rank(input, dim, false, k - 1, values, indices);
}

void median_dim(const Tensor& input, int64_t dim, bool, Tensor& values, Tensor& indices) {
  if (values.numel() == 0) return;
  const int64_t n = input.dim() == 0 ? 1 : input.size(dim);
  select_rank(input, dim, true, (n - 1) / 2, values, indices);
}

void median(const Tensor& input, Tensor& out) {
  if (input.numel() == 0) return fill(out, median_of_none(out.dtype()), out);
  Tensor line = empty({input.numel()}, input.dtype(), input.device());
  copy(input, view_of(line, Geometry{input.sizes(), contiguous_strides(input.sizes()), 0}));
  Tensor index = empty({}, DType::kInt64, input.device());
  select_rank(line, 0, true, (input.numel() - 1) / 2, out, index);
}

}  // namespace tt::cpu
