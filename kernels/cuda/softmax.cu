// softmax and log_softmax over any dimension, and their gradients.
#include <limits>
#include <optional>

#include "kernels/common/scalar_math.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/floating.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/row.h"

namespace tt::cuda {
namespace {

// A contiguous tensor as outer x n x inner; softmax runs along n.
struct Along {
  int64_t outer = 1, n = 1, inner = 1;

  Along(SizesView sizes, int64_t dim) {
    const int64_t dims = static_cast<int64_t>(sizes.size());
    if (dims == 0) return;
    if (dim < 0) dim += dims;
    for (int64_t d = 0; d < dims; ++d) (d < dim ? outer : d == dim ? n : inner) *= sizes[d];
  }
  int64_t rows() const { return outer * inner; }
  // Where row `r` starts; its elements are `inner` apart.
  TT_FUNCTION int64_t start(int64_t r) const { return inner == 1 ? r * n : r / inner * n * inner + r % inner; }
  // Rows that lie across each other are one thread's each, so that neighbouring threads read neighbouring elements.
  bool columns() const { return inner > 1 && rows() >= kColumnsWorthIt; }

  static constexpr int64_t kColumnsWorthIt = 2048;
};

// The largest element so far, and the sum of all exponentials relative to it.
template <typename C>
struct Running {
  C most = -std::numeric_limits<C>::infinity();
  C sum = 0;

  TT_FUNCTION void add(C x) {
    if (x > most) {
      sum = sum * math::exp(most - x) + 1;
      most = x;
    } else if (x != -std::numeric_limits<C>::infinity()) {
      sum += math::exp(x - most);
    }
  }
};
struct Join {
  template <typename C>
  TT_FUNCTION Running<C> operator()(const Running<C>& a, const Running<C>& b) const {
    const C most = a.most > b.most ? a.most : b.most;
    return {most, scaled(a, most) + scaled(b, most)};
  }
  template <typename C>
  TT_FUNCTION static C scaled(const Running<C>& x, C most) {
    return x.most == most ? x.sum : x.sum * math::exp(x.most - most);
  }
};
struct Larger {
  template <typename C>
  TT_FUNCTION C operator()(C a, C b) const {
    return b > a ? b : a;  // without a NaN's help: one makes the sum NaN, and with it the whole row
  }
};

template <typename C, typename G, typename R>
TT_DEVICE Running<C> total(G& group, const R& row) {
  Running<C> all;
  if (row.fits()) {
    row.each([&](int64_t, C x) { all.most = Larger()(all.most, x); });
    all.most = group.reduce(all.most, Larger());
    row.each([&](int64_t, C x) { all.sum += math::exp(x - all.most); });
    all.sum = group.reduce(all.sum, Add());
  } else {
    row.each([&](int64_t, C x) { all.add(x); });
    all = group.reduce(all, Join());
    if (math::isinf(all.most)) all.sum = std::numeric_limits<C>::quiet_NaN();
  }
  return all;
}

template <typename T, typename G>
TT_DEVICE void softmax_row(G& group, int64_t n, int64_t stride, bool log, const T* x, T* y) {
  using C = Wide<T>;
  const auto load = [=](int64_t i) { return convert<C>(x[i * stride]); };
  const Row<C, decltype(load)> row(group, n, load);
  const Running<C> all = total<C>(group, row);
  const C shift = log ? math::log(all.sum) : C(0), scale = 1 / all.sum;
  row.each([&](int64_t i, C value) {
    const C centered = value - all.most;
    y[i * stride] = convert<T>(log ? centered - shift : math::exp(centered) * scale);
  });
}

template <typename T, typename G>
TT_DEVICE void softmax_backward_row(G& group, int64_t n, int64_t stride, bool log, const T* g, const T* y, T* dx) {
  using C = Wide<T>;
  const auto load_g = [=](int64_t i) { return convert<C>(g[i * stride]); };
  const auto load_y = [=](int64_t i) { return convert<C>(y[i * stride]); };
  const Row<C, decltype(load_g)> row(group, n, load_g);
  C sum = 0;
  row.each([&](int64_t i, C value) { sum += log ? value : value * load_y(i); });
  sum = group.reduce(sum, Add());
  row.each([&](int64_t i, C value) {
    const C of = load_y(i);
    dx[i * stride] = convert<T>(log ? value - math::exp(of) * sum : (value - sum) * of);
  });
}

template <typename T>
void softmax_rows(const Queue& queue, const Along& along, bool log, const T* x, T* y) {
  const int64_t n = along.n, stride = along.inner;
  if (along.columns()) {
    for_each(queue, along.rows(), [=] TT_DEVICE(int64_t r) {
      Alone alone;
      softmax_row(alone, n, stride, log, x + along.start(r), y + along.start(r));
    });
  } else {
    for_each_group(queue, along.rows(), n, [=] TT_DEVICE(Group& group) {
      const int64_t at = along.start(group.index());
      softmax_row(group, n, stride, log, x + at, y + at);
    });
  }
}

template <typename T>
void softmax_backward_rows(const Queue& queue, const Along& along, bool log, const T* g, const T* y, T* dx) {
  const int64_t n = along.n, stride = along.inner;
  if (along.columns()) {
    for_each(queue, along.rows(), [=] TT_DEVICE(int64_t r) {
      Alone alone;
      const int64_t at = along.start(r);
      softmax_backward_row(alone, n, stride, log, g + at, y + at, dx + at);
    });
  } else {
    for_each_group(queue, along.rows(), n, [=] TT_DEVICE(Group& group) {
      const int64_t at = along.start(group.index());
      softmax_backward_row(group, n, stride, log, g + at, y + at, dx + at);
    });
  }
}

void forward(const Tensor& input, int64_t dim, bool log, Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor x = contiguous_as(input, out.dtype());
  with_floating(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    softmax_rows(queue_of(out), Along(x.sizes(), dim), log, x.data_as<T>(), out.data_as<T>());
  });
}

void backward(const Tensor& grad, const Tensor& output, int64_t dim, bool log, Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor g = contiguous_as(grad, out.dtype()), y = contiguous_as(output, out.dtype());
  with_floating(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    softmax_backward_rows(queue_of(out), Along(y.sizes(), dim), log, g.data_as<T>(), y.data_as<T>(), out.data_as<T>());
  });
}

}  // namespace

void softmax(const Tensor& input, int64_t dim, std::optional<DType>, Tensor& out) { forward(input, dim, false, out); }

void log_softmax(const Tensor& input, int64_t dim, std::optional<DType>, Tensor& out) {
  forward(input, dim, true, out);
}

void softmax_backward(const Tensor& grad, const Tensor& output, int64_t dim, Tensor& out) {
  backward(grad, output, dim, false, out);
}

void log_softmax_backward(const Tensor& grad, const Tensor& output, int64_t dim, Tensor& out) {
  backward(grad, output, dim, true, out);
}

}  // namespace tt::cuda
