// softmax and log_softmax over any dimension, and their gradients.

#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/nn/softmax.h"

namespace tt::cuda {
namespace {

// The layout of a row: n elements with distance `stride`. `log`: whether to compute log_softmax.
struct Walk {
  int64_t n, stride;
  bool log;
};

template <int kLanes, typename T, typename G>
TT_DEVICE void softmax_row(G& group, Walk walk, const T* x, T* y) {
  using C = AccumulateType<T>;
  const Row<T, kLanes> row(group, walk.n, x, walk.stride);
  const Running<C> all = total<C>(group, row);
  if (walk.log) {
    const C shift = math::log(all.sum);
    write(
        y, walk.stride, [&](int64_t, C value) { return value - all.most - shift; }, row);
  } else {
    const C scale = 1 / all.sum;
    write(
        y, walk.stride, [&](int64_t, C value) { return math::exp(value - all.most) * scale; }, row);
  }
}

template <int kLanes, typename T, typename G>
TT_DEVICE void softmax_backward_row(G& group, Walk walk, const T* g, const T* y, T* dx) {
  using C = AccumulateType<T>;
  const Row<T, kLanes, kOfTwo<T>> grads(group, walk.n, g, walk.stride), results(group, walk.n, y, walk.stride);
  C sum = 0;
  for_each_element([&](int64_t, C grad, C result) { sum += walk.log ? grad : grad * result; }, grads, results);
  sum = group.reduce(sum, Add());
  if (walk.log) {
    write(
        dx, walk.stride, [&](int64_t, C grad, C result) { return grad - math::exp(result) * sum; }, grads, results);
  } else {
    write(
        dx, walk.stride, [&](int64_t, C grad, C result) { return (grad - sum) * result; }, grads, results);
  }
}

template <typename T>
void softmax_columns(const Queue& queue, const Along& along, bool log, const T* x, T* y) {
  const Walk walk{along.n, along.inner, log};
  for_each(queue, along.rows(), [=] TT_DEVICE(int64_t r) {
    SingleThreadGroup alone;
    softmax_row<1>(alone, walk, x + along.start(r), y + along.start(r));
  });
}
template <typename T, int kLanes>
void softmax_rows(const Queue& queue, const Along& along, bool log, const T* x, T* y) {
  const Walk walk{along.n, along.inner, log};
  for_each_row<kOfOne<T, kLanes>>(queue, along.rows(), along.n, [=] TT_DEVICE(Group & group) {
    const int64_t at = along.start(group.index());
    softmax_row<kLanes>(group, walk, x + at, y + at);
  });
}

template <typename T>
void backward_columns(const Queue& queue, const Along& along, bool log, const T* g, const T* y, T* dx) {
  const Walk walk{along.n, along.inner, log};
  for_each(queue, along.rows(), [=] TT_DEVICE(int64_t r) {
    SingleThreadGroup alone;
    const int64_t at = along.start(r);
    softmax_backward_row<1>(alone, walk, g + at, y + at, dx + at);
  });
}
template <typename T, int kLanes>
void backward_rows(const Queue& queue, const Along& along, bool log, const T* g, const T* y, T* dx) {
  const Walk walk{along.n, along.inner, log};
  for_each_row<kOfTwo<T>>(queue, along.rows(), along.n, [=] TT_DEVICE(Group & group) {
    const int64_t at = along.start(group.index());
    softmax_backward_row<kLanes>(group, walk, g + at, y + at, dx + at);
  });
}

}  // namespace

void softmax_into(const Tensor& input, int64_t dim, bool log, Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor x = contiguous_as(input, out.dtype());
  with_floating(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    const Queue queue = queue_of(out);
    const Along along(x.sizes(), dim);
    const T* from = x.data_as<T>();
    T* to = out.data_as<T>();
    if (along.columns()) return softmax_columns(queue, along, log, from, to);
    const bool vectors = along.inner == 1 && is_vectors(along.n, sizeof(T), from, to);
    vectors ? softmax_rows<T, kVectorLanes<T>>(queue, along, log, from, to)
            : softmax_rows<T, 1>(queue, along, log, from, to);
  });
}

void softmax_gradient(const Tensor& grad, const Tensor& output, int64_t dim, bool log, Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor g = contiguous_as(grad, out.dtype()), y = contiguous_as(output, out.dtype());
  with_floating(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    const Queue queue = queue_of(out);
    const Along along(y.sizes(), dim);
    const T *grads = g.data_as<T>(), *results = y.data_as<T>();
    T* to = out.data_as<T>();
    if (along.columns()) return backward_columns(queue, along, log, grads, results, to);
    const bool vectors = along.inner == 1 && is_vectors(along.n, sizeof(T), grads, results, to);
    vectors ? backward_rows<T, kVectorLanes<T>>(queue, along, log, grads, results, to)
            : backward_rows<T, 1>(queue, along, log, grads, results, to);
  });
}

}  // namespace tt::cuda
