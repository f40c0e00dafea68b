// softmax and log_softmax over any dimension, and their gradients.
#include <algorithm>

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

}  // namespace

void softmax_into(const Tensor& input, int64_t dim, bool log, Tensor& out) {
  const SoftmaxVectors split(out.sizes(), dim);
  const bool is_narrow = accumulate_type(out.dtype()) != out.dtype() && input.dtype() == out.dtype();
  if (is_narrow && split.inner == 1 && split.n > 0) return forward_rows(contiguous(input), split.n, log, out);
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
