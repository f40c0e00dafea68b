// embedding: looks up rows of a table by index, and computes the table's gradient.
#include <algorithm>
#include <cstring>

#include "engine/device/parallel.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {
namespace {

// Returns the indices contiguous and as int64. Throws Error (IndexError) unless all are in [0, rows), before any row
// is accessed.
Tensor checked_indices(const Tensor& indices, int64_t rows) {
  Tensor wide = contiguous_as(indices, DType::kInt64);
  const int64_t* index = wide.data_as<int64_t>();
  for (int64_t i = 0; i < wide.numel(); ++i) {
    check(ErrorKind::kIndex, index[i] >= 0 && index[i] < rows, "index out of range in self");
  }
  return wide;
}

}  // namespace

void embedding(const Tensor& weight, const Tensor& indices, int64_t, Tensor& out) {
  const Tensor table = contiguous(weight), index = checked_indices(indices, weight.size(0));
  const int64_t row = weight.size(1) * static_cast<int64_t>(item_size(weight.dtype()));
  if (row == 0) return;
  parallel_for(index.numel(), std::max<int64_t>(1, (1 << 16) / row), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(out.data_as<char>() + i * row, table.data_as<char>() + index.data_as<int64_t>()[i] * row,
                  static_cast<size_t>(row));
    }
  });
}

void embedding_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                        Tensor& out) {
  const Tensor g = as_accumulate_type(grad), index = checked_indices(indices, num_weights);
  const int64_t width = out.size(1);
  check(g.numel() == index.numel() * width, "expected one gradient row for each of ", index.numel(),
        " indices, got gradient sizes ", to_string(grad.sizes()));
  AccumulateBuffer result(out);
  with_real(g.dtype(), [&]<typename T>(std::type_identity<T>) {
    T* sums = result.tensor().data_as<T>();
    std::fill(sums, sums + out.numel(), T(0));
    // Each thread sums a range of columns, so that rows that occur twice are summed without a race and in a fixed
    // order.
    parallel_for(width, 32, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < index.numel(); ++i) {
        const int64_t to = index.data_as<int64_t>()[i];
        if (to == padding_idx) continue;
        const T* from = g.data_as<T>() + i * width;
        for (int64_t j = begin; j < end; ++j) sums[to * width + j] += from[j];
      }
    });
  });
  result.copy_to_output();
}

}  // namespace tt::cpu
