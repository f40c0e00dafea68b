// The distinct values of a tensor, and the distinct rows of a matrix.
#include <algorithm>
#include <numeric>

#include "kernels/common/iteration/element.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/sorter.h"

namespace tt::cpu {
namespace {

// Compares rows element by element, in sort()'s order.
template <typename T>
class Table {
 public:
  Table(const T* data, int64_t columns) : data_(data), columns_(columns) {}
  const T* row(int64_t i) const { return data_ + i * columns_; }
  bool less(int64_t a, int64_t b) const {
    for (int64_t c = 0; c < columns_; ++c) {
      const auto x = sort_key(row(a)[c]), y = sort_key(row(b)[c]);
      if (x != y) return x < y;
    }
    return false;
  }
  // NaN is not equal to any value, including NaN.
  bool equal(int64_t a, int64_t b) const {
    return std::equal(row(a), row(a) + columns_, row(b), [](T x, T y) { return x == y; });
  }

 private:
  const T* data_;
  int64_t columns_;
};

}  // namespace

// Every NaN counts as a distinct value.
void unique_values(const Tensor& input, Tensor& output, Tensor& inverse_indices, Tensor& counts) {
  const Tensor flat = contiguous(input);
  const int64_t n = flat.numel();
  inverse_indices = empty(input.sizes(), DType::kInt64, input.device());
  Tensor first = empty({n}, DType::kInt64, input.device());  // index of each distinct value's first element
  Tensor start = empty({n}, DType::kInt64, input.device());  // index in sorted order of its first occurrence
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

void unique_rows(const Tensor& input, bool consecutive, Tensor& output, Tensor& inverse_indices, Tensor& counts) {
  check(input.dim() == 2, "expected a matrix, got ", to_string(input.sizes()));
  const Tensor x = contiguous(input);
  const int64_t n = x.size(0), columns = x.size(1);
  inverse_indices = empty({n}, DType::kInt64, input.device());
  const Tensor places = empty({n}, DType::kInt64, input.device());  // rows in order, then the first row of each group
  int64_t* const order = places.data_as<int64_t>();
  int64_t* const group_of = inverse_indices.data_as<int64_t>();
  int64_t groups = 0;
  std::iota(order, order + n, int64_t{0});
  with_element(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const Table<T> table(x.data_as<T>(), columns);
    if (!consecutive) {
      std::stable_sort(order, order + n, [&](int64_t a, int64_t b) { return table.less(a, b); });
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = order[i];
      if (i == 0 || !table.equal(row, order[i - 1])) order[groups++] = row;
      group_of[row] = groups - 1;
    }
    output = empty({groups, columns}, x.dtype(), x.device());
    for (int64_t i = 0; i < groups; ++i) {
      std::copy_n(table.row(order[i]), columns, output.data_as<T>() + i * columns);
    }
  });
  counts = empty({groups}, DType::kInt64, input.device());
  std::fill_n(counts.data_as<int64_t>(), groups, int64_t{0});
  for (int64_t row = 0; row < n; ++row) ++counts.data_as<int64_t>()[group_of[row]];
}

}  // namespace tt::cpu
