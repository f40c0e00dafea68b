#include "kernels/cpu/loops/pool_loops.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/loops/norm_loops.h"

namespace tt::cpu {
namespace {

template <typename T>
inline constexpr T kLowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                                  : std::numeric_limits<T>::lowest();

template <typename T>
[[gnu::always_inline]] inline bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x != x;
  else
    return false;
}

// Stored as the index of a maximum that has not been found yet. Greater than every index in a plane.
constexpr int32_t kNoIndex = std::numeric_limits<int32_t>::max();

// Strides of 1 and 2 are compile-time constants, so that the compiler vectorises over them.
template <typename F>
[[gnu::always_inline]] inline void with_stride(int64_t stride, F f) {
  if (stride == 1) return f([](int64_t i) { return i; });
  if (stride == 2) return f([](int64_t i) { return 2 * i; });
  f([stride](int64_t i) { return stride * i; });
}

// Intermediate results of a plane; the memory is reused for the next plane. Indices have 32 bits, like floats, so that
// loops over both vectorise. The memory is not charged to a session, so large buffers are freed after use.
template <typename T>
struct Buffers {
  static constexpr size_t kMaxKept = 1 << 20;

  void free_if_large() {
    if (values.size() > kMaxKept) *this = Buffers();
  }
  std::vector<T> values;
  std::vector<int32_t> at;

  static Buffers& of_thread(int64_t size) {
    thread_local Buffers buffers;
    if (static_cast<int64_t>(buffers.values.size()) < size) {
      buffers.values.resize(static_cast<size_t>(size));
      buffers.at.resize(static_cast<size_t>(size));
    }
    return buffers;
  }
};

// The input rows (or columns, if d = 1) that are in the windows of output row `o` and inside the plane: `count` rows,
// `step` apart.
struct WindowRows {
  int64_t first, count, step;

  WindowRows(const Window& w, int64_t o, size_t d = 0) : step(w.dilation[d]) {
    const int64_t begin = o * w.stride[d] - w.padding[d];
    const int64_t skipped = begin >= 0 ? 0 : (-begin + step - 1) / step;
    first = begin + skipped * step;
    const int64_t inside = first < w.in[d] ? (w.in[d] - 1 - first) / step + 1 : 0;
    count = std::clamp<int64_t>(w.kernel[d] - skipped, 0, inside);
  }
  int64_t operator[](int64_t k) const { return first + k * step; }
};

// Rows padded so that windows continue at the same stride across row ends. If all rows are stored one after the other,
// the window of output i starts at input i * stride. The inputs of each row start with the padding, and its outputs end
// with unused outputs.
struct PaddedRows {
  int64_t inputs, outputs;  // per row
  int64_t left;             // padding before a row
  int64_t used_inputs;      // number of a row's inputs that are in any window
  int64_t rows;
  int64_t reach;  // distance from a window's first to its last input

  explicit PaddedRows(const Window& w) : left(w.padding[1]), rows(w.out[0]), reach((w.kernel[1] - 1) * w.dilation[1]) {
    const int64_t stride = w.stride[1], needed = (w.out[1] - 1) * stride + reach + 1;
    outputs = (needed + stride - 1) / stride;
    inputs = outputs * stride;
    used_inputs = std::clamp<int64_t>(inputs - left, 0, w.in[1]);
  }
  int64_t all_inputs() const { return rows * inputs + reach; }  // the last unused windows extend past the end
  int64_t all_outputs() const { return rows * outputs; }
};

// Whether padded rows would need much more memory than the planes, because padding, stride or dilation are much larger
// than the planes. If so, each window is processed separately. Buffers are not charged to a session, so their size must
// be bounded.
bool is_sparse(const Window& w) {
  constexpr double kMaxRatio = 2, kAllowance = 1 << 16;
  const PaddedRows s(w);
  const double padded = static_cast<double>(s.rows) * static_cast<double>(s.inputs + s.outputs) + s.reach;
  return area(w.in) >= kNoIndex || padded > kMaxRatio * static_cast<double>(area(w.in) + area(w.out)) + kAllowance;
}

// Calls f(index in the plane) for each input in an output's window, row by row.
template <typename F>
void for_each_input(const Window& w, int64_t oh, int64_t ow, F f) {
  const WindowRows rows(w, oh), columns(w, ow, 1);
  for (int64_t i = 0; i < rows.count; ++i) {
    for (int64_t k = 0; k < columns.count; ++k) f(rows[i] * w.in[1] + columns[k]);
  }
}

template <typename F>
void for_each_output(const Window& w, F f) {
  for (int64_t oh = 0; oh < w.out[0]; ++oh) {
    for (int64_t ow = 0; ow < w.out[1]; ++ow) f(oh, ow, oh * w.out[1] + ow);
  }
}

// Columns are processed in multiples of kOverrun, past the end of a row: a scalar remainder would cost more than a
// full vector. Each row overwrites the excess elements of the previous row.
constexpr int64_t kOverrun = 16;

// Reduces columns: the maximum over each window's rows, and its index in the plane. Writes up to kOverrun excess
// elements.
template <typename T>
[[gnu::always_inline]] inline void max_down(const Window& w, const PaddedRows& s, const T* x, T* value, int32_t* at) {
  const int64_t width = w.in[1], end = w.in[0] * w.in[1],
                vectors = (s.used_inputs + kOverrun - 1) / kOverrun * kOverrun;
  for (int64_t i = 0; i < s.all_inputs(); ++i) value[i] = kLowest<T>, at[i] = kNoIndex;
  for (int64_t o = 0; o < w.out[0]; ++o) {
    T* v = value + o * s.inputs + s.left;
    int32_t* a = at + o * s.inputs + s.left;
    const WindowRows rows(w, o);
    if (rows.count == 0) continue;
    // Reads must stay inside the plane.
    const int64_t n = rows[rows.count - 1] * width + vectors <= end ? vectors : s.used_inputs;
    // Handles the first two rows together: most windows have no more.
    const int64_t second = rows[rows.count > 1 ? 1 : 0];
    const T *x0 = x + rows[0] * width, *x1 = x + second * width;
    const int32_t at0 = static_cast<int32_t>(rows[0] * width), at1 = static_cast<int32_t>(second * width);
    for (int64_t i = 0; i < n; ++i) {
      const bool replace = (x1[i] > x0[i]) | is_nan(x1[i]);
      v[i] = replace ? x1[i] : x0[i];
      a[i] = (replace ? at1 : at0) + static_cast<int32_t>(i);
    }
    for (int64_t k = 2; k < rows.count; ++k) {
      const T* from = x + rows[k] * width;
      const int32_t start = static_cast<int32_t>(rows[k] * width);
      for (int64_t i = 0; i < n; ++i) {
        const bool replace = (from[i] > v[i]) | is_nan(from[i]);
        v[i] = replace ? from[i] : v[i];
        a[i] = replace ? start + static_cast<int32_t>(i) : a[i];
      }
    }
    for (int64_t i = 0; i < kOverrun; ++i) v[s.used_inputs + i] = kLowest<T>, a[s.used_inputs + i] = kNoIndex;
  }
}

// Outputs that are computed together: their maxima and indices stay in the first-level cache.
constexpr int64_t kTile = 1024;

// Reduces rows. As in a row-by-row scan of the window, the lowest index of equal elements is chosen, and the highest
// index of NaNs.
template <typename T>
[[gnu::always_inline]] inline void max_along(const Window& w, const PaddedRows& s, const T* value, const int32_t* at,
                                             T* y, int32_t* index) {
  with_stride(w.stride[1], [&](auto step) {
    for (int64_t begin = 0; begin < s.all_outputs(); begin += kTile) {
      const int64_t end = std::min(begin + kTile, s.all_outputs());
      for (int64_t i = begin; i < end; ++i) y[i] = value[step(i)], index[i] = at[step(i)];
      for (int64_t k = 1; k < w.kernel[1]; ++k) {
        const T* from = value + k * w.dilation[1];
        const int32_t* from_at = at + k * w.dilation[1];
        for (int64_t i = begin; i < end; ++i) {
          const T v = from[step(i)];
          const int32_t where = from_at[step(i)];
          const bool later_nan = is_nan(v) & (!is_nan(y[i]) | (where > index[i]));
          const bool replace = (v > y[i]) | later_nan | ((v == y[i]) & (where < index[i]));
          y[i] = replace ? v : y[i];
          index[i] = replace ? where : index[i];
        }
      }
    }
  });
}

template <typename T>
[[gnu::always_inline]] inline void max_whole(const Window& w, const T* x, T* y, int64_t* index) {
  const PaddedRows s(w);
  Buffers<T>& buffers = Buffers<T>::of_thread(s.all_inputs() + s.all_outputs() + kOverrun);
  T* values = buffers.values.data() + s.all_inputs();
  int32_t* at = buffers.at.data() + s.all_inputs();
  max_down(w, s, x, buffers.values.data(), buffers.at.data());
  max_along(w, s, buffers.values.data(), buffers.at.data(), values, at);
  // Rows without unused outputs are contiguous.
  const bool one_row = s.outputs == w.out[1];
  const int64_t rows = one_row ? 1 : w.out[0], n = one_row ? s.all_outputs() : w.out[1];
  for (int64_t o = 0; o < rows; ++o, y += n, index += n, values += s.outputs, at += s.outputs) {
    for (int64_t i = 0; i < n; ++i) y[i] = values[i];
    // A window without inputs gets index 0.
    for (int64_t i = 0; i < n; ++i) index[i] = at[i] == kNoIndex ? 0 : at[i];
  }
  buffers.free_if_large();
}

// Divides each sum in `y` by its window's divisor. Rows of `y` are `row` elements apart.
template <typename T>
[[gnu::always_inline]] inline void divide(const Window& w, const Divisor& divisor, T* y, int64_t row) {
  for (int64_t oh = 0; oh < w.out[0]; ++oh, y += row) {
    const int64_t rows = w.extent(0, oh, divisor.count_padding);
    for (int64_t ow = 0; ow < w.out[1]; ++ow) {
      const int64_t by = divisor.override ? divisor.override : rows * w.extent(1, ow, divisor.count_padding);
      y[ow] /= static_cast<T>(by);
    }
  }
}

template <typename T>
[[gnu::always_inline]] inline void average_whole(const Window& w, const Divisor& divisor, const T* x, T* y) {
  const PaddedRows s(w);
  Buffers<T>& buffers = Buffers<T>::of_thread(s.all_inputs() + s.all_outputs());
  T* sums = buffers.values.data();
  T* wide = sums + s.all_inputs();
  std::fill(sums, wide + s.all_outputs(), T(0));
  for (int64_t o = 0; o < w.out[0]; ++o) {
    T* sum = sums + o * s.inputs + s.left;
    const WindowRows rows(w, o);
    for (int64_t k = 0; k < rows.count; ++k) {
      for (int64_t i = 0; i < s.used_inputs; ++i) sum[i] += x[rows[k] * w.in[1] + i];
    }
  }
  with_stride(w.stride[1], [&](auto step) {
    for (int64_t k = 0; k < w.kernel[1]; ++k) {
      for (int64_t i = 0; i < s.all_outputs(); ++i) wide[i] += sums[step(i) + k];
    }
  });
  for (int64_t o = 0; o < w.out[0]; ++o) std::copy_n(wide + o * s.outputs, w.out[1], y + o * w.out[1]);
  buffers.free_if_large();
  divide(w, divisor, y, w.out[1]);
}

template <typename T>
[[gnu::always_inline]] inline void take_larger_of(int64_t n, const T* v, int64_t at, bool is_first, T* y,
                                                  int64_t* index) {
  for (int64_t c = 0; c < n; ++c) {
    const bool takes = is_first || v[c] > y[c] || v[c] != v[c];
    y[c] = takes ? v[c] : y[c];
    index[c] = takes ? at : index[c];
  }
}

// The next three functions process one window at a time. They are used if is_sparse(w).
template <typename T>
void max_sparse(const Window& w, const T* x, T* y, int64_t* index) {
  for_each_output(w, [&](int64_t oh, int64_t ow, int64_t o) {
    y[o] = kLowest<T>;
    index[o] = 0;
    bool found = false;
    for_each_input(w, oh, ow, [&](int64_t i) {
      if (found && !(x[i] > y[o]) && !is_nan(x[i])) return;
      y[o] = x[i];
      index[o] = i;
      found = true;
    });
  });
}

template <typename T>
void average_sparse(const Window& w, const Divisor& divisor, const T* x, T* y) {
  for_each_output(w, [&](int64_t oh, int64_t ow, int64_t o) {
    y[o] = 0;
    for_each_input(w, oh, ow, [&](int64_t i) { y[o] += x[i]; });
    y[o] /= static_cast<T>(divisor.at(w, oh, ow));
  });
}

template <typename T>
void average_back_sparse(const Window& w, const Divisor& divisor, const T* g, T* dx) {
  for_each_output(w, [&](int64_t oh, int64_t ow, int64_t o) {
    const T share = g[o] / static_cast<T>(divisor.at(w, oh, ow));
    for_each_input(w, oh, ow, [&](int64_t i) { dx[i] += share; });
  });
}

// The transpose of average_whole: distributes gradients along rows first, then along columns.
template <typename T>
[[gnu::always_inline]] inline void average_back(const Window& w, const Divisor& divisor, const T* g, T* dx) {
  const PaddedRows s(w);
  Buffers<T>& buffers = Buffers<T>::of_thread(s.all_inputs() + s.all_outputs());
  T* sums = buffers.values.data();
  T* shares = sums + s.all_inputs();
  std::fill(sums, shares + s.all_outputs(), T(0));
  for (int64_t o = 0; o < w.out[0]; ++o) std::copy_n(g + o * w.out[1], w.out[1], shares + o * s.outputs);
  divide(w, divisor, shares, s.outputs);
  with_stride(w.stride[1], [&](auto step) {
    for (int64_t k = 0; k < w.kernel[1]; ++k) {
      for (int64_t i = 0; i < s.all_outputs(); ++i) sums[step(i) + k] += shares[i];
    }
  });
  for (int64_t o = 0; o < w.out[0]; ++o) {
    const T* sum = sums + o * s.inputs + s.left;
    const WindowRows rows(w, o);
    for (int64_t k = 0; k < rows.count; ++k) {
      for (int64_t i = 0; i < s.used_inputs; ++i) dx[rows[k] * w.in[1] + i] += sum[i];
    }
  }
  buffers.free_if_large();
}

// Scans the windows of a row of outputs in row-major order, as max_sparse() does, so that equal elements and NaNs give
// the same bits as the functions with indices. Takes a step per element of a window and output.
template <typename T>
[[gnu::always_inline]] inline void max_of_windows(const Window& w, const T* x, T* y) {
  const int64_t stride = w.stride[1], step_of_window = w.dilation[1], left = w.padding[1];
  // The elements of a window that are in the plane for at least one output.
  const int64_t before = left - (w.out[1] - 1) * stride;
  const int64_t first_k = before > 0 ? (before + step_of_window - 1) / step_of_window : 0;
  const int64_t end_k = std::min(w.kernel[1], (w.in[1] - 1 + left) / step_of_window + 1);
  for (int64_t oh = 0; oh < w.out[0]; ++oh, y += w.out[1]) {
    const WindowRows rows(w, oh);
    for (int64_t begin = 0; begin < w.out[1]; begin += kTile) {
      const int64_t end = std::min(begin + kTile, w.out[1]);
      std::fill(y + begin, y + end, kLowest<T>);
      for (int64_t r = 0; r < rows.count; ++r) {
        for (int64_t k = first_k; k < end_k; ++k) {
          const int64_t column = k * step_of_window - left;  // of output 0
          const int64_t last = w.in[1] - 1 - column;
          const int64_t from = std::max(begin, column < 0 ? (-column + stride - 1) / stride : 0);
          const int64_t to = last < 0 ? 0 : std::min(end, last / stride + 1);
          const T* const row = x + rows[r] * w.in[1] + column;
          with_stride(stride, [&](auto step) {
            for (int64_t i = from; i < to; ++i) {
              const T v = row[step(i)];
              y[i] = (v > y[i]) | is_nan(v) ? v : y[i];
            }
          });
        }
      }
    }
  }
}

// float and double have clones per instruction set; integers do not.
template <typename T>
void max_values_of(const Window& w, const T* x, T* y) {
  max_of_windows(w, x, y);
}
TT_CLONES void max_values_of(const Window& w, const float* x, float* y) { max_of_windows(w, x, y); }
TT_CLONES void max_values_of(const Window& w, const double* x, double* y) { max_of_windows(w, x, y); }
template <typename T>
void max_whole_of(const Window& w, const T* x, T* y, int64_t* index) {
  max_whole(w, x, y, index);
}
TT_CLONES void max_whole_of(const Window& w, const float* x, float* y, int64_t* index) { max_whole(w, x, y, index); }
TT_CLONES void max_whole_of(const Window& w, const double* x, double* y, int64_t* index) { max_whole(w, x, y, index); }
TT_CLONES void average_whole_of(const Window& w, const Divisor& d, const float* x, float* y) {
  average_whole(w, d, x, y);
}
TT_CLONES void average_whole_of(const Window& w, const Divisor& d, const double* x, double* y) {
  average_whole(w, d, x, y);
}
TT_CLONES void average_back_of(const Window& w, const Divisor& d, const float* g, float* dx) {
  average_back(w, d, g, dx);
}
TT_CLONES void average_back_of(const Window& w, const Divisor& d, const double* g, double* dx) {
  average_back(w, d, g, dx);
}

// y and index become v's where v is greater or NaN. Whether y has a value is the same for all n.
TT_CLONES void take_larger(int64_t n, const float* v, int64_t at, bool is_first, float* y, int64_t* index) {
  take_larger_of(n, v, at, is_first, y, index);
}
TT_CLONES void take_larger(int64_t n, const double* v, int64_t at, bool is_first, double* y, int64_t* index) {
  take_larger_of(n, v, at, is_first, y, index);
}

}  // namespace

template <typename T>
void max_row_of_channels(const Window& w, int64_t channels, int64_t row, const T* x, T* y, int64_t* index) {
  const WindowRows rows(w, row);
  for (int64_t o = 0; o < w.out[1]; ++o, y += channels, index += channels) {
    std::fill(y, y + channels, kLowest<T>);
    std::fill(index, index + channels, 0);
    const WindowRows columns(w, o, 1);
    for (int64_t i = 0; i < rows.count; ++i) {
      for (int64_t j = 0; j < columns.count; ++j) {
        const int64_t at = rows[i] * w.in[1] + columns[j];
        take_larger(channels, x + at * channels, at, i == 0 && j == 0, y, index);
      }
    }
  }
}

template <typename T>
void max_plane(const Window& w, const T* x, T* y, int64_t* index) {
  if (is_sparse(w)) return max_sparse(w, x, y, index);
  max_whole_of(w, x, y, index);
}

template <typename T>
void max_values(const Window& w, const T* x, T* y) {
  max_values_of(w, x, y);
}

template <typename T>
void max_plane_backward(const Window& w, const T* g, const int64_t* index, T* dx) {
  for (int64_t i = 0; i < w.out[0] * w.out[1]; ++i) dx[index[i]] += g[i];
}

template <typename T>
void average_plane(const Window& w, const Divisor& divisor, const T* x, T* y) {
  if (is_sparse(w)) return average_sparse(w, divisor, x, y);
  average_whole_of(w, divisor, x, y);
}

template <typename T>
void average_plane_backward(const Window& w, const Divisor& divisor, const T* g, T* dx) {
  if (is_sparse(w)) return average_back_sparse(w, divisor, g, dx);
  average_back_of(w, divisor, g, dx);
}

template <typename T>
void adaptive_max_plane(Pair in, Pair out, const T* x, T* y, int64_t* index) {
  for (int64_t oh = 0; oh < out[0]; ++oh) {
    const int64_t top = bin_begin(oh, in[0], out[0]), bottom = bin_end(oh, in[0], out[0]);
    for (int64_t ow = 0; ow < out[1]; ++ow, ++y, ++index) {
      const int64_t left = bin_begin(ow, in[1], out[1]), right = bin_end(ow, in[1], out[1]);
      *y = kLowest<T>;
      *index = top * in[1] + left;
      for (int64_t ih = top; ih < bottom; ++ih) {
        for (int64_t i = ih * in[1] + left; i < ih * in[1] + right; ++i) {
          if (x[i] > *y || x[i] != x[i]) *y = x[i], *index = i;
        }
      }
    }
  }
}

template <typename T>
void adaptive_average_plane(Pair in, Pair out, const T* x, T* y) {
  for (int64_t oh = 0; oh < out[0]; ++oh) {
    const int64_t top = bin_begin(oh, in[0], out[0]), bottom = bin_end(oh, in[0], out[0]);
    for (int64_t ow = 0; ow < out[1]; ++ow, ++y) {
      const int64_t left = bin_begin(ow, in[1], out[1]), right = bin_end(ow, in[1], out[1]);
      double sum = 0;
      if (out[1] == 1) {  // whole rows are contiguous; usual before a classifier
        sum = rows::sum((bottom - top) * in[1], x + top * in[1]);
      } else {
        for (int64_t ih = top; ih < bottom; ++ih) sum += rows::sum(right - left, x + ih * in[1] + left);
      }
      *y = static_cast<T>(sum / static_cast<double>((bottom - top) * (right - left)));
    }
  }
}

template <typename T>
void adaptive_average_plane_backward(Pair in, Pair out, const T* g, T* dx) {
  for (int64_t oh = 0; oh < out[0]; ++oh) {
    const int64_t top = bin_begin(oh, in[0], out[0]), bottom = bin_end(oh, in[0], out[0]);
    for (int64_t ow = 0; ow < out[1]; ++ow, ++g) {
      const int64_t left = bin_begin(ow, in[1], out[1]), right = bin_end(ow, in[1], out[1]);
      const T share = *g / static_cast<T>((bottom - top) * (right - left));
      for (int64_t ih = top; ih < bottom; ++ih) {
        for (int64_t iw = left; iw < right; ++iw) dx[ih * in[1] + iw] += share;
      }
    }
  }
}

#define TT_MAX_POOL(T)                                                              \
  template void max_plane<T>(const Window&, const T*, T*, int64_t*);                \
  template void max_values<T>(const Window&, const T*, T*);                         \
  template void max_plane_backward<T>(const Window&, const T*, const int64_t*, T*); \
  template void adaptive_max_plane<T>(Pair, Pair, const T*, T*, int64_t*);
#define TT_AVERAGE_POOL(T)                                                              \
  template void average_plane<T>(const Window&, const Divisor&, const T*, T*);          \
  template void average_plane_backward<T>(const Window&, const Divisor&, const T*, T*); \
  template void adaptive_average_plane<T>(Pair, Pair, const T*, T*);                    \
  template void adaptive_average_plane_backward<T>(Pair, Pair, const T*, T*);
template void max_row_of_channels<float>(const Window&, int64_t, int64_t, const float*, float*, int64_t*);
template void max_row_of_channels<double>(const Window&, int64_t, int64_t, const double*, double*, int64_t*);
TT_MAX_POOL(float)
TT_MAX_POOL(double)
TT_MAX_POOL(uint8_t)
TT_MAX_POOL(int8_t)
TT_MAX_POOL(int16_t)
TT_MAX_POOL(int32_t)
TT_MAX_POOL(int64_t)
TT_MAX_POOL(uint16_t)
TT_MAX_POOL(uint32_t)
TT_MAX_POOL(uint64_t)
TT_AVERAGE_POOL(float)
TT_AVERAGE_POOL(double)

}  // namespace tt::cpu
