#include "kernels/cpu/loops/softmax_loops.h"

#include <algorithm>
#include <limits>

#include "kernels/common/math/exponential.h"
#include "kernels/common/math/vector_math.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/loops/lanes.h"

namespace tt::cpu {
namespace {

// Enough partial results to keep the vector units busy; loops over them are unrolled and vectorised.
template <typename T>
constexpr int kLanes = 256 / sizeof(T);

template <typename T>
[[gnu::always_inline]] inline T exponential(T x) {
  if constexpr (sizeof(T) == 4)
    return math::exponential(x);
  else
    return ::exp(x);
}
template <typename T>
[[gnu::always_inline]] inline T logarithm(T x) {
  if constexpr (sizeof(T) == 4)
    return ::logf(x);
  else
    return ::log(x);
}

// Reduces a row: lanes[i % kLanes] = step(lanes[i % kLanes], i), then joins all lanes.
template <typename T, typename Step, typename Join>
[[gnu::always_inline]] inline T reduce_row(int64_t n, T start, Step step, Join join) {
  constexpr int kWidth = kLanes<T>;
  T lanes[kWidth];
  for (int j = 0; j < kWidth; ++j) lanes[j] = start;
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    for (int j = 0; j < kWidth; ++j) lanes[j] = step(lanes[j], i + j);
  }
  for (int j = 0; i < n; ++i, ++j) lanes[j] = step(lanes[j], i);
  return join_lanes<kWidth>(lanes, join);
}

// Ignores NaN, because a NaN makes the row's sum, and therefore the whole row, NaN.
template <typename T>
[[gnu::always_inline]] inline T largest(int64_t n, const T* x) {
  const auto larger = [](T a, T b) { return b > a ? b : a; };
  return reduce_row(
      n, -std::numeric_limits<T>::infinity(), [&](T m, int64_t i) { return larger(m, x[i]); }, larger);
}

template <typename T>
[[gnu::always_inline]] inline T sum_of_exponentials(int64_t n, const T* x, T most) {
  // Exponentials are stored before they are added: a call of their vector function would spill the lanes.
  constexpr int64_t kPiece = 512;
  const auto plus = [](T a, T b) { return a + b; };
  T piece[kPiece], sum = 0;
  for (int64_t first = 0; first < n; first += kPiece) {
    const int64_t count = n - first < kPiece ? n - first : kPiece;
    for (int64_t i = 0; i < count; ++i) piece[i] = exponential(x[first + i] - most);
    sum += reduce_row(
        count, T(0), [&](T s, int64_t i) { return s + piece[i]; }, plus);
  }
  return sum;
}

template <typename T>
[[gnu::always_inline]] inline void softmax_row(int64_t n, bool log, const T* x, T* y) {
  const auto plus = [](T a, T b) { return a + b; };
  const T most = largest(n, x);
  if (log) {
    const T shift = logarithm(sum_of_exponentials(n, x, most));
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] - most - shift;
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = exponential(x[i] - most);
    const T scale = 1 / reduce_row(
                            n, T(0), [&](T s, int64_t i) { return s + y[i]; }, plus);
    for (int64_t i = 0; i < n; ++i) y[i] *= scale;
  }
}

template <typename T>
[[gnu::always_inline]] inline void backward_row(int64_t n, bool log, const T* g, const T* y, T* dx) {
  const auto plus = [](T a, T b) { return a + b; };
  if (log) {
    const T sum = reduce_row(
        n, T(0), [&](T s, int64_t i) { return s + g[i]; }, plus);
    for (int64_t i = 0; i < n; ++i) dx[i] = g[i] - exponential(y[i]) * sum;
  } else {
    const T sum = reduce_row(
        n, T(0), [&](T s, int64_t i) { return s + g[i] * y[i]; }, plus);
    for (int64_t i = 0; i < n; ++i) dx[i] = (g[i] - sum) * y[i];
  }
}

constexpr int64_t kColumns = 64;  // columns processed at a time, with their running values in registers and L1

template <typename T>
[[gnu::always_inline]] inline void softmax_columns(int64_t n, int64_t width, int64_t stride, bool log, const T* x,
                                                   T* y) {
  T most[kColumns], sum[kColumns];
  for (int64_t j = 0; j < width; ++j) most[j] = x[j], sum[j] = 0;
  for (int64_t i = 1; i < n; ++i) {
    for (int64_t j = 0; j < width; ++j) most[j] = x[i * stride + j] > most[j] ? x[i * stride + j] : most[j];
  }
  for (int64_t i = 0; i < n; ++i) {  // y may be x, which the logarithm is computed from
    if (log) {
      for (int64_t j = 0; j < width; ++j) sum[j] += exponential(x[i * stride + j] - most[j]);
      continue;
    }
    for (int64_t j = 0; j < width; ++j) {
      const T e = exponential(x[i * stride + j] - most[j]);
      y[i * stride + j] = e;
      sum[j] += e;
    }
  }
  for (int64_t j = 0; j < width; ++j) sum[j] = log ? most[j] + logarithm(sum[j]) : 1 / sum[j];
  for (int64_t i = 0; i < n; ++i) {
    if (log) {
      for (int64_t j = 0; j < width; ++j) y[i * stride + j] = x[i * stride + j] - sum[j];
    } else {
      for (int64_t j = 0; j < width; ++j) y[i * stride + j] *= sum[j];
    }
  }
}

template <typename T>
[[gnu::always_inline]] inline void backward_columns(int64_t n, int64_t width, int64_t stride, bool log, const T* g,
                                                    const T* y, T* dx) {
  T sum[kColumns];
  for (int64_t j = 0; j < width; ++j) sum[j] = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T *gi = g + i * stride, *yi = y + i * stride;
    if (log) {
      for (int64_t j = 0; j < width; ++j) sum[j] += gi[j];
    } else {
      for (int64_t j = 0; j < width; ++j) sum[j] += gi[j] * yi[j];
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    const T *gi = g + i * stride, *yi = y + i * stride;
    T* di = dx + i * stride;
    if (log) {
      for (int64_t j = 0; j < width; ++j) di[j] = gi[j] - exponential(yi[j]) * sum[j];
    } else {
      for (int64_t j = 0; j < width; ++j) di[j] = (gi[j] - sum[j]) * yi[j];
    }
  }
}

template <typename T>
[[gnu::always_inline]] inline void log_sums_of_columns(const Vectors& v, int64_t width, const T* x, T* most, T* sums) {
  for (int64_t j = 0; j < width; ++j) most[j] = x[j], sums[j] = 0;
  for (int64_t i = 1; i < v.n; ++i) {
    const T* xi = x + i * v.stride;
    for (int64_t j = 0; j < width; ++j) most[j] = xi[j] > most[j] ? xi[j] : most[j];
  }
  for (int64_t i = 0; i < v.n; ++i) {
    const T* xi = x + i * v.stride;
    for (int64_t j = 0; j < width; ++j) sums[j] += exponential(xi[j] - most[j]);
  }
  for (int64_t j = 0; j < width; ++j) sums[j] = logarithm(sums[j]);
}

template <typename T>
[[gnu::always_inline]] inline void log_sums_of(const Vectors& v, const T* x, T* most, T* sums) {
  if (v.stride == 0) {
    for (int64_t r = 0; r < v.count; ++r) {
      most[r] = largest(v.n, x + r * v.n);
      sums[r] = logarithm(sum_of_exponentials(v.n, x + r * v.n, most[r]));
    }
    return;
  }
  for (int64_t j = 0; j < v.count; j += kColumns) {
    log_sums_of_columns(v, std::min(kColumns, v.count - j), x + j, most + j, sums + j);
  }
}

// Stores finish(scaled value, i, j) as element i of vector j.
template <typename T, typename Finish>
[[gnu::always_inline]] inline void scaled_softmax_of(const Vectors& v, const T* x, const T* most, const T* sums,
                                                     const T* scales, T* y, Finish finish) {
  if (v.stride == 0) {
    for (int64_t r = 0; r < v.count; ++r) {
      const T *row = x + r * v.n, largest = most[r], shift = sums[r], scale = scales[r];
      T* to = y + r * v.n;
      for (int64_t i = 0; i < v.n; ++i) to[i] = finish(exponential(row[i] - largest - shift) * scale, i, r);
    }
    return;
  }
  for (int64_t i = 0; i < v.n; ++i) {
    const T* xi = x + i * v.stride;
    T* yi = y + i * v.stride;
    for (int64_t j = 0; j < v.count; ++j) yi[j] = finish(exponential(xi[j] - most[j] - sums[j]) * scales[j], i, j);
  }
}

template <typename T>
[[gnu::always_inline]] inline void smoothed_softmax_of(const Vectors& v, const T* x, const T* most, const T* sums,
                                                       const T* scales, const T* rates, const T* weights, T* y) {
  if (weights) {
    scaled_softmax_of(v, x, most, sums, scales, y,
                      [&](T value, int64_t i, int64_t j) { return value - rates[j] * weights[i]; });
  } else {
    scaled_softmax_of(v, x, most, sums, scales, y, [&](T value, int64_t, int64_t j) { return value - rates[j]; });
  }
}

template <typename T, typename Weight>
[[gnu::always_inline]] inline void uniform_losses_of(const Vectors& v, const T* x, const T* most, const T* sums,
                                                     double* losses, Weight weight) {
  if (v.stride == 0) {
    const auto plus = [](double a, double b) { return a + b; };
    for (int64_t r = 0; r < v.count; ++r) {
      const T *row = x + r * v.n, largest = most[r], shift = sums[r];
      losses[r] = reduce_row(
          v.n, 0.0,
          [&](double s, int64_t i) { return s + weight(i) * static_cast<double>(shift - (row[i] - largest)); }, plus);
    }
    return;
  }
  std::fill_n(losses, v.count, 0.0);
  for (int64_t i = 0; i < v.n; ++i) {
    const T* xi = x + i * v.stride;
    const double w = weight(i);
    for (int64_t j = 0; j < v.count; ++j) losses[j] += w * static_cast<double>(sums[j] - (xi[j] - most[j]));
  }
}

template <typename T>
[[gnu::always_inline]] inline void uniform_losses_of(const Vectors& v, const T* x, const T* most, const T* sums,
                                                     const T* weights, double each, double* losses) {
  if (weights) {
    uniform_losses_of(v, x, most, sums, losses, [&](int64_t i) { return each * static_cast<double>(weights[i]); });
  } else {
    uniform_losses_of(v, x, most, sums, losses, [&](int64_t) { return each; });
  }
}

template <typename T>
[[gnu::always_inline]] inline void forward(const Vectors& v, bool log, const T* x, T* y) {
  if (v.stride == 0) {
    for (int64_t r = 0; r < v.count; ++r) softmax_row(v.n, log, x + r * v.n, y + r * v.n);
    return;
  }
  for (int64_t j = 0; j < v.count; j += kColumns) {
    softmax_columns(v.n, std::min(kColumns, v.count - j), v.stride, log, x + j, y + j);
  }
}

template <typename T>
[[gnu::always_inline]] inline void backward(const Vectors& v, bool log, const T* g, const T* y, T* dx) {
  if (v.stride == 0) {
    for (int64_t r = 0; r < v.count; ++r) backward_row(v.n, log, g + r * v.n, y + r * v.n, dx + r * v.n);
    return;
  }
  for (int64_t j = 0; j < v.count; j += kColumns) {
    backward_columns(v.n, std::min(kColumns, v.count - j), v.stride, log, g + j, y + j, dx + j);
  }
}

}  // namespace

TT_CLONES void softmax_vectors(const Vectors& v, bool log, const float* x, float* y) { forward(v, log, x, y); }
TT_CLONES void softmax_vectors(const Vectors& v, bool log, const double* x, double* y) { forward(v, log, x, y); }
TT_CLONES void softmax_backward_vectors(const Vectors& v, bool log, const float* g, const float* y, float* dx) {
  backward(v, log, g, y, dx);
}
TT_CLONES void softmax_backward_vectors(const Vectors& v, bool log, const double* g, const double* y, double* dx) {
  backward(v, log, g, y, dx);
}

TT_CLONES void log_sums(const Vectors& v, const float* x, float* largest, float* sums) {
  log_sums_of(v, x, largest, sums);
}
TT_CLONES void log_sums(const Vectors& v, const double* x, double* largest, double* sums) {
  log_sums_of(v, x, largest, sums);
}
TT_CLONES void scaled_softmax(const Vectors& v, const float* x, const float* largest, const float* sums,
                              const float* scales, float* y) {
  scaled_softmax_of(v, x, largest, sums, scales, y, [](float value, int64_t, int64_t) { return value; });
}
TT_CLONES void scaled_softmax(const Vectors& v, const double* x, const double* largest, const double* sums,
                              const double* scales, double* y) {
  scaled_softmax_of(v, x, largest, sums, scales, y, [](double value, int64_t, int64_t) { return value; });
}
TT_CLONES void uniform_losses(const Vectors& v, const float* x, const float* largest, const float* sums,
                              const float* weights, double each, double* losses) {
  uniform_losses_of(v, x, largest, sums, weights, each, losses);
}
TT_CLONES void uniform_losses(const Vectors& v, const double* x, const double* largest, const double* sums,
                              const double* weights, double each, double* losses) {
  uniform_losses_of(v, x, largest, sums, weights, each, losses);
}
TT_CLONES void smoothed_softmax(const Vectors& v, const float* x, const float* largest, const float* sums,
                                const float* scales, const float* rates, const float* weights, float* y) {
  smoothed_softmax_of(v, x, largest, sums, scales, rates, weights, y);
}
TT_CLONES void smoothed_softmax(const Vectors& v, const double* x, const double* largest, const double* sums,
                                const double* scales, const double* rates, const double* weights, double* y) {
  smoothed_softmax_of(v, x, largest, sums, scales, rates, weights, y);
}

}  // namespace tt::cpu
