// Pooling over the last two dimensions. One thread computes each output or, in gradients, the gradient of each input.
#include <limits>
#include <optional>

#include "kernels/common/nn/pool_window.h"
#include "kernels/cuda/iteration/atomic_accumulate.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/device_error.h"

namespace tt::cuda {
namespace {

using List = absl::Span<const int64_t>;

template <typename T>
inline constexpr T kLowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                                  : std::numeric_limits<T>::lowest();

// The rows or columns of one window: first, first + step, ... below end.
struct Range {
  int64_t first, end, step;
};

// range(d, o): the range that the window of output `o` covers along dimension d, clipped to the plane. Sliding: windows
// of fixed size. Adaptive: the windows of adaptive pooling.
struct Sliding {
  Window w;

  TT_DEVICE Range range(int d, int64_t o) const {
    const int64_t step = w.dilation[d], begin = o * w.stride[d] - w.padding[d];
    const int64_t first = begin >= 0 ? begin : begin + (step - 1 - begin) / step * step;
    return {first, std::min(w.in[d], begin + w.kernel[d] * step), step};
  }
};
struct Adaptive {
  Window w;  // only its sizes are used

  TT_DEVICE Range range(int d, int64_t o) const {
    return {bin_begin(o, w.in[d], w.out[d]), bin_end(o, w.in[d], w.out[d]), 1};
  }
};

Window sizes_alone(SizesView in, SizesView out) { return {last_two(in), last_two(out), {1, 1}, {1, 1}}; }

// The position of the element that a thread computes, in a tensor of planes of `size`.
struct PlanePosition {
  int64_t plane, row, column;

  TT_DEVICE PlanePosition(int64_t i, const Pair& size)
      : plane(i / (size[0] * size[1])), row(i / size[1] % size[0]), column(i % size[1]) {}
};

template <typename C, typename T, typename Windows>
void largest(const Queue& queue, int64_t n, Windows windows, const T* x, T* y, int64_t* index) {
  const Window w = windows.w;
  for_each(queue, n, [=] TT_DEVICE(int64_t i) {
    const PlanePosition position(i, w.out);
    const Range rows = windows.range(0, position.row), columns = windows.range(1, position.column);
    const T* plane = x + position.plane * w.in[0] * w.in[1];
    C most = kLowest<C>;
    // An empty window uses the first element of the plane.
    int64_t at = rows.first < rows.end && columns.first < columns.end ? rows.first * w.in[1] + columns.first : 0;
    for (int64_t row = rows.first; row < rows.end; row += rows.step) {
      for (int64_t column = columns.first; column < columns.end; column += columns.step) {
        const C value = convert<C>(plane[row * w.in[1] + column]);
        if (value > most || is_nan(value)) {
          most = value;
          at = row * w.in[1] + column;
        }
      }
    }
    y[i] = convert<T>(most);
    index[i] = at;
  });
}

template <typename T, typename Windows, typename Count>
void average(const Queue& queue, int64_t n, Windows windows, Count count, const T* x, T* y) {
  using C = AccumulateType<T>;
  const Window w = windows.w;
  for_each(queue, n, [=] TT_DEVICE(int64_t i) {
    const PlanePosition position(i, w.out);
    const Range rows = windows.range(0, position.row), columns = windows.range(1, position.column);
    const T* plane = x + position.plane * w.in[0] * w.in[1];
    C sum = 0;
    for (int64_t row = rows.first; row < rows.end; ++row) {
      for (int64_t column = columns.first; column < columns.end; ++column)
        sum += convert<C>(plane[row * w.in[1] + column]);
    }
    y[i] = convert<T>(sum / static_cast<C>(count(position.row, position.column)));
  });
}

// range(d, i): the range of windows that contain input `i` along dimension d.
struct SlidingBack {
  Window w;

  TT_DEVICE Range range(int d, int64_t i) const {
    const int64_t reach = i + w.padding[d], before = reach - w.kernel[d] + 1;  // range of window starts
    const int64_t first = before <= 0 ? 0 : (before + w.stride[d] - 1) / w.stride[d];
    return {first, std::min(w.out[d], reach / w.stride[d] + 1), 1};
  }
};
struct AdaptiveBack {
  Window w;

  TT_DEVICE Range range(int d, int64_t i) const {
    return {bin_begin(i, w.out[d], w.in[d]), bin_end(i, w.out[d], w.in[d]), 1};
  }
};

template <typename T, typename Windows, typename Count>
void average_backward(const Queue& queue, int64_t n, Windows windows, Count count, const T* g, T* dx) {
  using C = AccumulateType<T>;
  const Window w = windows.w;
  for_each(queue, n, [=] TT_DEVICE(int64_t i) {
    const PlanePosition position(i, w.in);
    const Range rows = windows.range(0, position.row), columns = windows.range(1, position.column);
    const T* plane = g + position.plane * w.out[0] * w.out[1];
    C sum = 0;
    for (int64_t row = rows.first; row < rows.end; ++row) {
      for (int64_t column = columns.first; column < columns.end; ++column) {
        sum += convert<C>(plane[row * w.out[1] + column]) / static_cast<C>(count(row, column));
      }
    }
    dx[i] = convert<T>(sum);
  });
}

// Computes the divisor of each output.
struct SlidingCount {
  Window w;
  Divisor divisor;

  TT_DEVICE int64_t operator()(int64_t row, int64_t column) const { return divisor.at(w, row, column); }
};
struct AdaptiveCount {
  Adaptive windows;

  TT_DEVICE int64_t operator()(int64_t row, int64_t column) const {
    const Range rows = windows.range(0, row), columns = windows.range(1, column);
    return (rows.end - rows.first) * (columns.end - columns.first);
  }
};

template <typename Windows>
void find_largest(const Tensor& input, Windows windows, Tensor& output, Tensor& indices) {
  const Tensor x = contiguous(input);
  with_element(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    using C = std::conditional_t<std::is_integral_v<T>, T, AccumulateType<T>>;
    if constexpr (std::is_same_v<T, Bool>) {
      fail_max_pool(x.dtype());
    } else {
      largest<C>(queue_of(output), output.numel(), windows, x.data_as<T>(), output.data_as<T>(),
                 indices.data_as<int64_t>());
    }
  });
}

template <typename Windows, typename Count>
void take_average(const Tensor& input, Windows windows, Count count, Tensor& out) {
  if (is_integral(out.dtype())) {  // means are truncated when they are stored
    Tensor means = empty(out.sizes(), DType::kFloat64, out.device());
    take_average(contiguous_as(input, DType::kFloat64), windows, count, means);
    return copy(means, out);
  }
  const Tensor x = contiguous(input);
  with_floating(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    average(queue_of(out), out.numel(), windows, count, x.data_as<T>(), out.data_as<T>());
  });
}

template <typename Windows, typename Count>
void spread_average(const Tensor& grad, Windows windows, Count count, Tensor& out) {
  check_same_planes(grad.sizes(), out.sizes());
  const Tensor g = contiguous(grad);
  with_floating(g.dtype(), [&]<typename T>(std::type_identity<T>) {
    average_backward(queue_of(out), out.numel(), windows, count, g.data_as<T>(), out.data_as<T>());
  });
}

Error index_outside(const DeviceErrorCell& cell) {
  return Error(ErrorKind::kIndex, pool_index_error(cell.values[0], cell.values[2]));
}

template <typename T>
void add_at(const Queue& queue, int64_t n, int64_t from, int64_t to, const int64_t* index, const T* g, AccumulateType<T>* dx) {
  DeviceErrorCell* cell = open_error_cell(queue, &index_outside);
  for_each(queue, n, [=] TT_DEVICE(int64_t i) {
    const int64_t at = index[i];
    if (at >= 0 && at < to) {
      atomic_add(dx + i / from * to + at, convert<AccumulateType<T>>(g[i]));
    } else {
      report_error(cell, at, 0, to);
    }
  });
}

}  // namespace

void max_pool2d_with_indices(const Tensor& input, List kernel_size, std::optional<List> stride, List padding,
                             List dilation, bool, Tensor& output, Tensor& indices) {
  if (output.numel() == 0) return;
  const Window w = window(input.sizes(), output.sizes(), kernel_size, stride, padding, dilation);
  find_largest(input, Sliding{w}, output, indices);
}

void max_pool2d_backward(const Tensor& grad, const Tensor& indices, List, Tensor& out) {
  check_pool_indices(indices, grad);
  check_same_planes(grad.sizes(), out.sizes());
  const Tensor index = contiguous_as(indices, DType::kInt64), g = contiguous(grad);
  const int64_t from = area(last_two(grad.sizes())), to = area(last_two(out.sizes()));
  atomic_accumulate(out, [&]<typename C>(C* dx) {
    with_floating(g.dtype(), [&]<typename T>(std::type_identity<T>) {
      if constexpr (std::is_same_v<AccumulateType<T>, C>) {
        add_at(queue_of(out), g.numel(), from, to, index.data_as<int64_t>(), g.data_as<T>(), dx);
      }
    });
  });
}

void avg_pool2d(const Tensor& input, List kernel_size, std::optional<List> stride, List padding, bool,
                bool count_include_pad, std::optional<int64_t> divisor_override, Tensor& out) {
  if (out.numel() == 0) return;
  const Window w = window(input.sizes(), out.sizes(), kernel_size, stride, padding);
  take_average(input, Sliding{w}, SlidingCount{w, Divisor(count_include_pad, divisor_override)}, out);
}

void avg_pool2d_backward(const Tensor& grad, List, List kernel_size, std::optional<List> stride, List padding, bool,
                         bool count_include_pad, std::optional<int64_t> divisor_override, Tensor& out) {
  const Window w = window(out.sizes(), grad.sizes(), kernel_size, stride, padding);
  spread_average(grad, SlidingBack{w}, SlidingCount{w, Divisor(count_include_pad, divisor_override)}, out);
}

void adaptive_avg_pool2d(const Tensor& input, List, Tensor& out) {
  const Adaptive windows{sizes_alone(input.sizes(), out.sizes())};
  take_average(input, windows, AdaptiveCount{windows}, out);
}

void adaptive_avg_pool2d_backward(const Tensor& grad, List, Tensor& out) {
  const Window w = sizes_alone(out.sizes(), grad.sizes());
  spread_average(grad, AdaptiveBack{w}, AdaptiveCount{Adaptive{w}}, out);
}

void adaptive_max_pool2d_with_indices(const Tensor& input, List, Tensor& output, Tensor& indices) {
  find_largest(input, Adaptive{sizes_alone(input.sizes(), output.sizes())}, output, indices);
}

}  // namespace tt::cuda
