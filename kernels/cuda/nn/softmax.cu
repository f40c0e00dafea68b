// softmax and log_softmax over any dimension, and their gradients.

#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/nn/softmax.h"

namespace tt::cuda {
namespace {

// A row has n elements at distance `stride`. If `log`, log_softmax is computed.
struct RowLayout {
  int64_t n, stride;
  bool log;
};

template <int kLanes, typename T, typename G>
TT_DEVICE void softmax_row(G& group, RowLayout layout, const T* x, T* y) {
  using C = AccumulateType<T>;
  const Row<T, kLanes> row(group, layout.n, x, layout.stride);
  const Running<C> all = sum_exponentials<C>(group, row);
  if (layout.log) {
    const C shift = math::log(all.sum);
    write(
        y, layout.stride, [&](int64_t, C value) { return value - all.most - shift; }, row);
  } else {
    const C scale = 1 / all.sum;
    write(
        y, layout.stride, [&](int64_t, C value) { return math::exp(value - all.most) * scale; }, row);
  }
}

template <int kLanes, typename T, typename G>
TT_DEVICE void softmax_backward_row(G& group, RowLayout layout, const T* g, const T* y, T* dx) {
  using C = AccumulateType<T>;
  const Row<T, kLanes, kMaxKeptTwoRows<T>> grads(group, layout.n, g, layout.stride),
      results(group, layout.n, y, layout.stride);
  C sum = 0;
  for_each_element([&](int64_t, C grad, C result) { sum += layout.log ? grad : grad * result; }, grads, results);
  sum = group.reduce(sum, Add());
  if (layout.log) {
    write(
        dx, layout.stride, [&](int64_t, C grad, C result) { return grad - math::exp(result) * sum; }, grads, results);
  } else {
    write(
        dx, layout.stride, [&](int64_t, C grad, C result) { return (grad - sum) * result; }, grads, results);
  }
}

template <typename T>
void softmax_columns(const Queue& queue, const SoftmaxRows& split, bool log, const T* x, T* y) {
  const RowLayout layout{split.n, split.inner, log};
  for_each(queue, split.rows(), [=] TT_DEVICE(int64_t r) {
    SingleThreadGroup alone;
    softmax_row<1>(alone, layout, x + split.start(r), y + split.start(r));
  });
}
template <typename T, int kLanes>
void softmax_rows(const Queue& queue, const SoftmaxRows& split, bool log, const T* x, T* y) {
  const RowLayout layout{split.n, split.inner, log};
  for_each_row<kMaxKeptOneRow<T, kLanes>>(queue, split.rows(), split.n, [=] TT_DEVICE(Group & group) {
    const int64_t at = split.start(group.index());
    softmax_row<kLanes>(group, layout, x + at, y + at);
  });
}

template <typename T>
void backward_columns(const Queue& queue, const SoftmaxRows& split, bool log, const T* g, const T* y, T* dx) {
  const RowLayout layout{split.n, split.inner, log};
  for_each(queue, split.rows(), [=] TT_DEVICE(int64_t r) {
    SingleThreadGroup alone;
    const int64_t at = split.start(r);
    softmax_backward_row<1>(alone, layout, g + at, y + at, dx + at);
  });
}
template <typename T, int kLanes>
void backward_rows(const Queue& queue, const SoftmaxRows& split, bool log, const T* g, const T* y, T* dx) {
  const RowLayout layout{split.n, split.inner, log};
  for_each_row<kMaxKeptTwoRows<T>>(queue, split.rows(), split.n, [=] TT_DEVICE(Group & group) {
    const int64_t at = split.start(group.index());
    softmax_backward_row<kLanes>(group, layout, g + at, y + at, dx + at);
  });
}

}  // namespace

void softmax_into(const Tensor& input, int64_t dim, bool log, Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor x = contiguous_as(input, out.dtype());
  with_floating(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const Queue queue = queue_of(out);
    const SoftmaxRows split(x.sizes(), dim);
    const T* from = x.data_as<T>();
    T* to = out.data_as<T>();
    if (split.columns()) return softmax_columns(queue, split, log, from, to);
    const bool vectors = split.inner == 1 && is_vectorizable(split.n, sizeof(T), from, to);
    vectors ? softmax_rows<T, kVectorLanes<T>>(queue, split, log, from, to)
            : softmax_rows<T, 1>(queue, split, log, from, to);
  });
}

void softmax_gradient(const Tensor& grad, const Tensor& output, int64_t dim, bool log, Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor g = contiguous_as(grad, out.dtype()), y = contiguous_as(output, out.dtype());
  with_floating(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    const Queue queue = queue_of(out);
    const SoftmaxRows split(y.sizes(), dim);
    const T *grads = g.data_as<T>(), *results = y.data_as<T>();
    T* to = out.data_as<T>();
    if (split.columns()) return backward_columns(queue, split, log, grads, results, to);
    const bool vectors = split.inner == 1 && is_vectorizable(split.n, sizeof(T), grads, results, to);
    vectors ? backward_rows<T, kVectorLanes<T>>(queue, split, log, grads, results, to)
            : backward_rows<T, 1>(queue, split, log, grads, results, to);
  });
}

}  // namespace tt::cuda
