#include "kernels/cpu/pool_loops.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/cpu/clones.h"

namespace tt::cpu {
namespace {

// A run of outputs [first, last) whose input at kernel position k lies inside [0, in).
struct Run {
  int64_t first;
  int64_t last;
};
inline Run inside(int64_t k, int64_t in, int64_t out, int64_t stride, int64_t padding, int64_t dilation) {
  const int64_t shift = k * dilation - padding;  // input = output * stride + shift
  const int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  const int64_t last = in - 1 < shift ? 0 : std::min(out, (in - 1 - shift) / stride + 1);
  return {first, std::max(first, last)};
}

template <typename T>
inline constexpr T kLowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                                  : std::numeric_limits<T>::lowest();

// Strides of 1 and 2 are told to the compiler, which vectorises over them.
template <typename F>
[[gnu::always_inline]] inline void with_stride(int64_t stride, F f) {
  if (stride == 1) return f([](int64_t i) { return i; });
  if (stride == 2) return f([](int64_t i) { return 2 * i; });
  f([stride](int64_t i) { return stride * i; });
}

// One tap of a row of windows: y[i] = max(y[i], x[i * stride]), at[i] = where it was.
template <typename T>
[[gnu::always_inline]] inline void max_tap(int64_t n, int64_t stride, const T* x, int32_t position, T* y, int32_t* at) {
  with_stride(stride, [&](auto step) {
    for (int64_t i = 0; i < n; ++i) {
      const T value = x[step(i)];
      const bool take = (value > y[i]) | (value != value);
      y[i] = take ? value : y[i];
      at[i] = take ? position + static_cast<int32_t>(step(i)) : at[i];
    }
  });
}
template <typename T>
void max_row(int64_t n, int64_t stride, const T* x, int32_t position, T* y, int32_t* at) {
  max_tap(n, stride, x, position, y, at);
}
TT_CLONES void max_row_clones(int64_t n, int64_t stride, const float* x, int32_t position, float* y, int32_t* at) {
  max_tap(n, stride, x, position, y, at);
}
template <>
void max_row(int64_t n, int64_t stride, const float* x, int32_t position, float* y, int32_t* at) {
  max_row_clones(n, stride, x, position, y, at);
}

template <typename T>
[[gnu::always_inline]] inline void add_tap(int64_t n, int64_t stride, const T* x, T* y) {
  with_stride(stride, [&](auto step) {
    for (int64_t i = 0; i < n; ++i) y[i] += x[step(i)];
  });
}
TT_CLONES void add_row(int64_t n, int64_t stride, const float* x, float* y) { add_tap(n, stride, x, y); }
TT_CLONES void add_row(int64_t n, int64_t stride, const double* x, double* y) { add_tap(n, stride, x, y); }

// Calls visit(kernel position, input row) for the window rows of output row o that lie inside.
template <typename F>
void for_each_window_row(const Window& w, int64_t o, F&& visit) {
  for (int64_t k = 0; k < w.kernel[0]; ++k) {
    const int64_t i = o * w.stride[0] - w.padding[0] + k * w.dilation[0];
    if (i >= 0 && i < w.in[0]) visit(i);
  }
}

// The first input of a window that is inside: what an all -inf window points at.
int64_t first_inside(int64_t o, int64_t stride, int64_t padding, int64_t dilation) {
  const int64_t i = o * stride - padding;
  return i >= 0 ? i : i + (-i + dilation - 1) / dilation * dilation;
}

// What the sum over window (oh, ow) is divided by, PyTorch's way: the padding counts up to where it ends.
int64_t divisor_at(const Window& w, const Divisor& divisor, int64_t oh, int64_t ow) {
  if (divisor.override) return divisor.override;
  const Pair o{oh, ow};
  int64_t size = 1;
  for (int d = 0; d < 2; ++d) {
    const int64_t begin = o[d] * w.stride[d] - w.padding[d];
    const int64_t end = std::min(begin + w.kernel[d], w.in[d] + w.padding[d]);
    size *= divisor.count_padding ? end - begin : std::min(end, w.in[d]) - std::max<int64_t>(begin, 0);
  }
  return size;
}

int64_t bin_begin(int64_t i, int64_t in, int64_t out) { return i * in / out; }
int64_t bin_end(int64_t i, int64_t in, int64_t out) { return ((i + 1) * in + out - 1) / out; }

}  // namespace

template <typename T>
void max_plane(const Window& w, const T* x, T* y, int64_t* index) {
  thread_local std::vector<int32_t> at;  // 32 bits wide, as the loop that fills it
  at.resize(static_cast<size_t>(w.out[1]));
  for (int64_t oh = 0; oh < w.out[0]; ++oh, y += w.out[1], index += w.out[1]) {
    const int64_t top = first_inside(oh, w.stride[0], w.padding[0], w.dilation[0]) * w.in[1];
    for (int64_t ow = 0; ow < w.out[1]; ++ow) {
      y[ow] = kLowest<T>;
      at[ow] = static_cast<int32_t>(top + first_inside(ow, w.stride[1], w.padding[1], w.dilation[1]));
    }
    for_each_window_row(w, oh, [&](int64_t ih) {
      for (int64_t k = 0; k < w.kernel[1]; ++k) {
        const Run run = inside(k, w.in[1], w.out[1], w.stride[1], w.padding[1], w.dilation[1]);
        const int64_t from = ih * w.in[1] + run.first * w.stride[1] - w.padding[1] + k * w.dilation[1];
        max_row<T>(run.last - run.first, w.stride[1], x + from, static_cast<int32_t>(from), y + run.first,
                   at.data() + run.first);
      }
    });
    std::copy(at.begin(), at.end(), index);
  }
}

template <typename T>
void max_plane_backward(const Window& w, const T* g, const int64_t* index, T* dx) {
  for (int64_t i = 0; i < w.out[0] * w.out[1]; ++i) dx[index[i]] += g[i];
}

template <typename T>
void average_plane(const Window& w, const Divisor& divisor, const T* x, T* y) {
  for (int64_t oh = 0; oh < w.out[0]; ++oh, y += w.out[1]) {
    std::fill(y, y + w.out[1], T(0));
    for_each_window_row(w, oh, [&](int64_t ih) {
      for (int64_t k = 0; k < w.kernel[1]; ++k) {
        const Run run = inside(k, w.in[1], w.out[1], w.stride[1], w.padding[1], 1);
        const T* from = x + ih * w.in[1] + run.first * w.stride[1] - w.padding[1] + k;
        add_row(run.last - run.first, w.stride[1], from, y + run.first);
      }
    });
    for (int64_t ow = 0; ow < w.out[1]; ++ow) y[ow] /= static_cast<T>(divisor_at(w, divisor, oh, ow));
  }
}

template <typename T>
void average_plane_backward(const Window& w, const Divisor& divisor, const T* g, T* dx) {
  for (int64_t oh = 0; oh < w.out[0]; ++oh, g += w.out[1]) {
    for (int64_t ow = 0; ow < w.out[1]; ++ow) {
      const T share = g[ow] / static_cast<T>(divisor_at(w, divisor, oh, ow));
      const int64_t begin = ow * w.stride[1] - w.padding[1];
      const int64_t left = std::max<int64_t>(begin, 0), right = std::min(begin + w.kernel[1], w.in[1]);
      for_each_window_row(w, oh, [&](int64_t ih) {
        for (int64_t iw = left; iw < right; ++iw) dx[ih * w.in[1] + iw] += share;
      });
    }
  }
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
      T sum = 0;
      for (int64_t ih = top; ih < bottom; ++ih) {
        for (int64_t iw = left; iw < right; ++iw) sum += x[ih * in[1] + iw];
      }
      *y = sum / static_cast<T>((bottom - top) * (right - left));
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
  template void max_plane_backward<T>(const Window&, const T*, const int64_t*, T*); \
  template void adaptive_max_plane<T>(Pair, Pair, const T*, T*, int64_t*);
#define TT_AVERAGE_POOL(T)                                                              \
  template void average_plane<T>(const Window&, const Divisor&, const T*, T*);          \
  template void average_plane_backward<T>(const Window&, const Divisor&, const T*, T*); \
  template void adaptive_average_plane<T>(Pair, Pair, const T*, T*);                    \
  template void adaptive_average_plane_backward<T>(Pair, Pair, const T*, T*);
TT_MAX_POOL(float)
TT_MAX_POOL(double)
TT_MAX_POOL(uint8_t)
TT_MAX_POOL(int8_t)
TT_MAX_POOL(int16_t)
TT_MAX_POOL(int32_t)
TT_MAX_POOL(int64_t)
TT_AVERAGE_POOL(float)
TT_AVERAGE_POOL(double)

}  // namespace tt::cpu
