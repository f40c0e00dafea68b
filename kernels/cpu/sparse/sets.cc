// sparse_union and sparse_intersection of two sorted sets of columns.
#include <utility>

#include "kernels/common/sparse/index_errors.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/sparse/columns.h"
#include "kernels/cpu/sparse/indices.h"

namespace tt::cpu {
namespace {

Tensor positions(int64_t count) { return empty({count}, DType::kInt64, Device{}); }

// The two sets. Throws Error (RuntimeError) unless they are sorted.
std::pair<Columns, Columns> both(const Tensor& input, const Tensor& other, SizesView size) {
  check_index_dtypes({&input, &other});
  std::pair<Columns, Columns> result(Columns(input, size), Columns(other, size));
  if (!result.first.is_sorted_and_distinct() || !result.second.is_sorted_and_distinct()) throw sparse_set_error();
  return result;
}

// Calls step(i, j) for each distinct column in order: i and j are its positions in the sets, or -1.
template <typename Step>
void merge(const Columns& a, const Columns& b, Step step) {
  int64_t i = 0, j = 0;
  while (i < a.count() || j < b.count()) {
    const int order = i == a.count() ? 1 : j == b.count() ? -1 : a.compare(i, b, j);
    const int64_t from_a = order <= 0 ? i++ : -1, from_b = order >= 0 ? j++ : -1;
    step(from_a, from_b);
  }
}

}  // namespace

void sparse_union(const Tensor& input, const Tensor& other, absl::Span<const int64_t> size, Tensor& indices,
                  Tensor& position, Tensor& other_position) {
  const auto [a, b] = both(input, other, size);
  position = positions(a.count());
  other_position = positions(b.count());
  int64_t count = 0;
  merge(a, b, [&](int64_t i, int64_t j) {
    if (i >= 0) position.data_as<int64_t>()[i] = count;
    if (j >= 0) other_position.data_as<int64_t>()[j] = count;
    ++count;
  });
  indices = a.empty_like(count);
  for (int64_t i = 0; i < a.count(); ++i) a.copy_column(i, indices, position.data_as<int64_t>()[i]);
  for (int64_t j = 0; j < b.count(); ++j) b.copy_column(j, indices, other_position.data_as<int64_t>()[j]);
}

void sparse_intersection(const Tensor& input, const Tensor& other, absl::Span<const int64_t> size, Tensor& position,
                         Tensor& other_position) {
  const auto [a, b] = both(input, other, size);
  int64_t count = 0;
  merge(a, b, [&](int64_t i, int64_t j) { count += i >= 0 && j >= 0; });
  position = positions(count);
  other_position = positions(count);
  int64_t at = 0;
  merge(a, b, [&](int64_t i, int64_t j) {
    if (i < 0 || j < 0) return;
    position.data_as<int64_t>()[at] = i;
    other_position.data_as<int64_t>()[at++] = j;
  });
}

}  // namespace tt::cpu
