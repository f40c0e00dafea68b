// softmax and log_softmax over any dimension, and their gradients.
#include <algorithm>
#include <vector>

#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/converted_rows.h"
#include "kernels/cpu/nn/softmax.h"

namespace tt::cpu {
namespace {

// Computes rows of 16-bit floats. Converts one row at a time, so that the converted row stays in the cache.
void forward_rows(const Tensor& x, int64_t n, bool log, const Tensor& out) {
  parallel_for(x.numel() / n, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
    ConvertedRows<float> from(x, n), to(out, n);
    for (int64_t at = begin * n; at < end * n; at += n) {
      softmax_vectors({n, 1, 0}, log, from.read(at, n), to.place(at));
      to.write(at, n);
    }
  });
}

// Computes columns of 16-bit floats. Converts a group of columns at a time, so that they stay in the cache.
constexpr int64_t kMostConverted = 4096;  // elements per column: the buffer is not charged to a session

void forward_columns(const Tensor& x, const SoftmaxVectors& split, bool log, const Tensor& out) {
  const int64_t n = split.n, groups = (split.inner + kColumns - 1) / kColumns;
  const int64_t item = static_cast<int64_t>(item_size(x.dtype()));
  const int64_t grain = std::max<int64_t>(1, kGrain / (n * kColumns));
  parallel_for(split.outer * groups, grain, [&](int64_t begin, int64_t end) {
    std::vector<float> tile(static_cast<size_t>(n * kColumns));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % groups * kColumns, width = std::min(kColumns, split.inner - column);
      const int64_t first = (i / groups * n * split.inner + column) * item;
      for (int64_t row = 0; row < n; ++row) {
        load_block(tile.data() + row * width, x.data_as<char>() + first + row * split.inner * item, x.dtype(), 1,
                   width);
      }
      softmax_vectors({n, width, width}, log, tile.data(), tile.data());
      for (int64_t row = 0; row < n; ++row) {
        store_block(out.data_as<char>() + first + row * split.inner * item, out.dtype(), 1, tile.data() + row * width,
                    width);
      }
    }
  });
}

}  // namespace

void softmax_into(const Tensor& input, int64_t dim, bool log, Tensor& out) {
  const SoftmaxVectors split(out.sizes(), dim);
  const bool is_narrow = accumulate_type(out.dtype()) != out.dtype() && input.dtype() == out.dtype();
  if (is_narrow && split.inner == 1 && split.n > 0) return forward_rows(contiguous(input), split.n, log, out);
  if (is_narrow && split.inner > 1 && split.n > 0 && split.n <= kMostConverted) {
    return forward_columns(contiguous(input), split, log, out);
  }
  AccumulateBuffer result(out);
  const Tensor x = contiguous_as(input, result.tensor().dtype());
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    T* y = result.tensor().data_as<T>();
    split.for_each_group([&](const Vectors& v, int64_t at) { softmax_vectors(v, log, x.data_as<T>() + at, y + at); });
  });
  result.copy_to_output();
}

void softmax_gradient(const Tensor& grad, const Tensor& output, int64_t dim, bool log, Tensor& out) {
  AccumulateBuffer result(out);
  const DType dtype = result.tensor().dtype();
  const Tensor g = contiguous_as(grad, dtype), y = contiguous_as(output, dtype);
  with_real(dtype, [&]<typename T>(std::type_identity<T>) {
    T* dx = result.tensor().data_as<T>();
    SoftmaxVectors(y.sizes(), dim).for_each_group([&](const Vectors& v, int64_t at) {
      softmax_backward_vectors(v, log, g.data_as<T>() + at, y.data_as<T>() + at, dx + at);
    });
  });
  result.copy_to_output();
}

}  // namespace tt::cpu
