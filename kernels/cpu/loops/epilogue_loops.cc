#include "kernels/cpu/loops/epilogue_loops.h"

#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {
namespace {

// The bodies of engine/ops/activations.yaml, in which NaN stays NaN.
template <Activation activation, typename T>
[[gnu::always_inline]] inline T activated(T v) {
  switch (activation) {
    case Activation::kRelu: return v < 0 ? T(0) : v;
    case Activation::kRelu6: return v < 0 ? T(0) : v > 6 ? T(6) : v;
    case Activation::kHardswish: return v <= -3 ? T(0) : v >= 3 ? v : v * (v + 3) / 6;
    case Activation::kNone: break;
  }
  return v;
}

// norm(i, y[i]) is the normalised element.
template <Activation activation, typename T, typename Norm>
[[gnu::always_inline]] inline void finish(int64_t n, Norm norm, const T* added, T* y) {
  if (added) {
    for (int64_t i = 0; i < n; ++i) y[i] = activated<activation>(norm(i, y[i]) + added[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = activated<activation>(norm(i, y[i]));
  }
}

template <typename T, typename Norm>
[[gnu::always_inline]] inline void finish(int64_t n, Norm norm, const T* added, Activation activation, T* y) {
  switch (activation) {
    case Activation::kNone: return finish<Activation::kNone>(n, norm, added, y);
    case Activation::kRelu: return finish<Activation::kRelu>(n, norm, added, y);
    case Activation::kRelu6: return finish<Activation::kRelu6>(n, norm, added, y);
    case Activation::kHardswish: return finish<Activation::kHardswish>(n, norm, added, y);
  }
}

template <typename T>
[[gnu::always_inline]] inline void channel_of(int64_t n, const ChannelNorm<T>& norm, int64_t channel, const T* added,
                                              Activation activation, T* y) {
  if (!norm.scale)
    return finish(
        n, [](int64_t, T v) { return v; }, added, activation, y);
  const T center = norm.center[channel], scale = norm.scale[channel], shift = norm.shift[channel];
  finish(
      n, [=](int64_t, T v) { return (v - center) * scale + shift; }, added, activation, y);
}

template <typename T>
[[gnu::always_inline]] inline void rows_of(int64_t rows, int64_t n, const ChannelNorm<T>& norm, const T* added,
                                           Activation activation, T* y) {
  if (!norm.scale)
    return finish(
        rows * n, [](int64_t, T v) { return v; }, added, activation, y);
  const T *center = norm.center, *scale = norm.scale, *shift = norm.shift;
  for (int64_t r = 0; r < rows; ++r) {
    finish(
        n, [=](int64_t i, T v) { return (v - center[i]) * scale[i] + shift[i]; }, added ? added + r * n : nullptr,
        activation, y + r * n);
  }
}

template <typename T>
[[gnu::always_inline]] inline void normalize_of(int64_t rows, int64_t n, const ChannelNorm<T>& norm, const T* x, T* y) {
  const T *center = norm.center, *scale = norm.scale, *shift = norm.shift;
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - center[i]) * scale[i] + shift[i];
  }
}

}  // namespace

TT_CLONES void normalize_rows(int64_t rows, int64_t n, const ChannelNorm<float>& norm, const float* x, float* y) {
  normalize_of(rows, n, norm, x, y);
}
TT_CLONES void normalize_rows(int64_t rows, int64_t n, const ChannelNorm<double>& norm, const double* x, double* y) {
  normalize_of(rows, n, norm, x, y);
}
TT_CLONES void finish_channel(int64_t n, const ChannelNorm<float>& norm, int64_t channel, const float* added,
                              Activation activation, float* y) {
  channel_of(n, norm, channel, added, activation, y);
}
TT_CLONES void finish_channel(int64_t n, const ChannelNorm<double>& norm, int64_t channel, const double* added,
                              Activation activation, double* y) {
  channel_of(n, norm, channel, added, activation, y);
}
TT_CLONES void finish_rows(int64_t rows, int64_t n, const ChannelNorm<float>& norm, const float* added,
                           Activation activation, float* y) {
  rows_of(rows, n, norm, added, activation, y);
}
TT_CLONES void finish_rows(int64_t rows, int64_t n, const ChannelNorm<double>& norm, const double* added,
                           Activation activation, double* y) {
  rows_of(rows, n, norm, added, activation, y);
}

}  // namespace tt::cpu
