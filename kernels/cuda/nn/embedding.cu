// embedding: copies rows of a table by index, and computes the gradient of the table.
#include "kernels/cuda/iteration/atomic_accumulate.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/device_error.h"

namespace tt::cuda {
namespace {

Error index_out_of_table(const DeviceErrorCell&) { return Error(ErrorKind::kIndex, "index out of range in self"); }

// Row indices into a table, checked when read.
struct Rows {
  const int64_t* index;
  int64_t count;
  DeviceErrorCell* cell;

  // Returns a negative number if the index is out of range.
  TT_DEVICE int64_t at(int64_t i) const {
    const int64_t row = index[i];
    if (row >= 0 && row < count) return row;
    report_error(cell, row, 0, count);
    return -1;
  }
};

Rows rows_of(const Tensor& indices, int64_t count) {
  return {indices.data_as<int64_t>(), count, open_error_cell(queue_of(indices), &index_out_of_table)};
}

template <typename T>
void take_rows(const Queue& queue, Rows rows, int64_t n, int64_t width, const T* table, T* to) {
  for_each(queue, n * width, [=] TT_DEVICE(int64_t i) {
    const int64_t row = rows.at(i / width);
    to[i] = row < 0 ? T(0) : table[row * width + i % width];
  });
}

template <typename T>
void add_rows(const Queue& queue, Rows rows, int64_t n, int64_t width, int64_t skipped, const T* from,
              AccumulateType<T>* sums) {
  for_each(queue, n * width, [=] TT_DEVICE(int64_t i) {
    const int64_t row = rows.at(i / width);
    if (row >= 0 && row != skipped) atomic_add(sums + row * width + i % width, convert<AccumulateType<T>>(from[i]));
  });
}

}  // namespace

void embedding(const Tensor& weight, const Tensor& indices, int64_t, Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor table = contiguous(weight), index = contiguous_as(indices, DType::kInt64);
  with_bits(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    take_rows(queue_of(out), rows_of(index, weight.size(0)), index.numel(), weight.size(1), table.data_as<T>(),
              out.data_as<T>());
  });
}

void embedding_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                        Tensor& out) {
  const Tensor g = contiguous(grad), index = contiguous_as(indices, DType::kInt64);
  const int64_t width = out.size(1);
  check(g.numel() == index.numel() * width, "expected one gradient row for each of ", index.numel(),
        " indices, got gradients of sizes ", to_string(grad.sizes()));
  const Queue queue = queue_of(out);
  const Rows rows = rows_of(index, num_weights);
  atomic_accumulate(out, [&]<typename C>(C* sums) {
    with_floating(g.dtype(), [&]<typename T>(std::type_identity<T>) {
      if constexpr (std::is_same_v<AccumulateType<T>, C>) {
        add_rows(queue, rows, index.numel(), width, padding_idx, g.data_as<T>(), sums);
      }
    });
  });
}

}  // namespace tt::cuda
