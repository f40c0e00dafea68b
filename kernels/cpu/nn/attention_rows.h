// The loops of attention over rows of scores, compiled for each instruction set.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/common/math/exponential.h"
#include "kernels/common/math/vector_math.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/loops/lanes.h"

namespace tt::cpu::attention_blocks {

template <typename T>
TT_CLONES void multiply_row(T* __restrict row, int64_t n, T by) {
  for (int64_t i = 0; i < n; ++i) row[i] *= by;
}
// to[i] = from[i] * by.
template <typename To, typename T>
TT_CLONES void convert_row(To* __restrict to, const T* __restrict from, int64_t n, T by) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i] * by);
}
// Divides each of m rows by its total, unless that is 0.
template <typename To, typename T>
TT_CLONES void divide_rows(To* __restrict to, const T* __restrict from, int64_t m, int64_t width,
                           const T* __restrict totals) {
  for (int64_t r = 0; r < m; ++r) {
    const T by = totals[r] != 0 ? 1 / totals[r] : T(1);
    for (int64_t i = 0; i < width; ++i) to[r * width + i] = static_cast<To>(from[r * width + i] * by);
  }
}
// grads[i] = weights[i] * (grads[i] - delta) * scale.
template <typename T>
TT_CLONES void score_grad_row(T* __restrict grads, const T* __restrict weights, int64_t n, T delta, T scale) {
  for (int64_t i = 0; i < n; ++i) grads[i] = weights[i] * (grads[i] - delta) * scale;
}

// Folds n elements: step(total, i) adds elements [i, i + kCount) to a vector of totals, last(total, i) adds one element
// to a number, and join(total, other) adds a total, both vectors or numbers. Four vectors keep the vector units busy.
template <typename T, typename Step, typename Last, typename Join>
[[gnu::always_inline]] inline T fold(int64_t n, T start, Step step, Last last, Join join) {
  using Vector = typename Lanes<T>::Vector;
  constexpr int64_t kCount = Lanes<T>::kCount;
  Vector totals[4] = {Vector{} + start, Vector{} + start, Vector{} + start, Vector{} + start};
  int64_t i = 0;
  for (; i + 4 * kCount <= n; i += 4 * kCount) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) step(totals[v], i + v * kCount);
  }
  for (; i + kCount <= n; i += kCount) step(totals[0], i);
  for (int v = 1; v < 4; ++v) join(totals[0], totals[v]);
  T lanes[kCount];
  lanes_at(lanes) = totals[0];
#pragma GCC unroll 4
  for (int64_t half = kCount / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int64_t lane = 0; lane < half; ++lane) join(lanes[lane], lanes[lane + half]);
  }
  for (; i < n; ++i) last(lanes[0], i);
  return lanes[0];
}
// The mask of a row of scores, whose entries are `step` elements apart: numbers that are added, or which scores are
// replaced by `value` whatever they are. Neither: no mask. Sums with numbers are passed to `round` if it is set.
template <typename T>
struct MaskRow {
  const T* added = nullptr;
  const bool* excluded = nullptr;
  int64_t step = 0;
  T value = -std::numeric_limits<T>::infinity();
  void (*round)(T* row, int64_t n) = nullptr;
};

template <typename T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();

// Rounds numbers to a type of 16 bits, as single calls do that store them.
template <typename Low, typename T>
TT_CLONES void round_row(T* __restrict row, int64_t n) {
  for (int64_t i = 0; i < n; ++i) row[i] = static_cast<T>(static_cast<Low>(row[i]));
}

[[gnu::always_inline]] inline Lanes<float>::Vector exponentials(Lanes<float>::Vector x) {
  typedef int32_t Integers __attribute__((vector_size(64)));
  return math::exponential_of<Lanes<float>::Vector, Integers>(x);
}
// row[i] = exp(row[i] - shift).
[[gnu::always_inline]] inline void exp_row(float* __restrict row, int64_t n, float shift) {
  constexpr int64_t kCount = Lanes<float>::kCount;
  int64_t i = 0;
  for (; i + kCount <= n; i += kCount) lanes_at(row + i) = exponentials(lanes_at(row + i) - shift);
  if (i == n) return;
  float rest[kCount] = {};
  std::copy_n(row + i, n - i, rest);
  lanes_at(rest) = exponentials(lanes_at(rest) - shift);
  std::copy_n(rest, n - i, row + i);
}
[[gnu::always_inline]] inline void exp_row(double* __restrict row, int64_t n, double shift) {
  for (int64_t i = 0; i < n; ++i) row[i] = ::exp(row[i] - shift);
}
// The end of the elements that loops over the first `visible` ones of a row of n elements process: that of the last
// vector in float, because these loops are several times as fast without a rest.
template <typename T>
[[gnu::always_inline]] inline int64_t end_of_vectors(int64_t visible, int64_t n) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  return sizeof(T) == 4 ? std::min(n, (visible + kCount - 1) / kCount * kCount) : visible;
}
// row[i] = row[i] * scale, with the mask, for i < visible, and -inf for visible <= i < end.
template <typename T>
[[gnu::always_inline]] inline void scale_row(T* __restrict row, int64_t visible, int64_t end, T scale,
                                             MaskRow<T> mask) {
  if (mask.added) {
    for (int64_t i = 0; i < visible; ++i) row[i] = row[i] * scale + mask.added[i * mask.step];
    if (mask.round) mask.round(row, visible);
  } else if (mask.excluded) {
    const T value = mask.value;
    for (int64_t i = 0; i < visible; ++i) row[i] = mask.excluded[i * mask.step] ? value : row[i] * scale;
  } else {
    for (int64_t i = 0; i < end; ++i) row[i] *= scale;
  }
  for (int64_t i = visible; i < end; ++i) row[i] = -kInfinity<T>;
}
template <typename T>
[[gnu::always_inline]] inline T largest_of(const T* row, int64_t n) {
  const auto keep_larger = [](auto& most, const auto& x) { most = x > most ? x : most; };
  return fold(
      n, -kInfinity<T>,
      [&](auto& most, int64_t i) {
        const typename Lanes<T>::Vector x = lanes_at(row + i);  // at an aligned address
        keep_larger(most, x);
      },
      [&](T& most, int64_t i) { keep_larger(most, row[i]); }, keep_larger);
}
template <typename T>
[[gnu::always_inline]] inline T sum_of_row(const T* x, int64_t n) {
  return fold(
      n, T(0), [&](auto& sum, int64_t i) { sum += lanes_at(x + i); }, [&](T& sum, int64_t i) { sum += x[i]; },
      [](auto& sum, const auto& x) { sum += x; });
}

// The maximum that was subtracted from a row of scores, and the sum of their exponentials.
template <typename T>
struct RowSum {
  T most, sum;
};
// Replaces a row of n products, of which the first `visible` are scores, by unnormalised weights: the exponentials of
// the scores less the largest of them and of `before`, and zeros. If that is -inf, because all scores are -inf or NaN,
// the scores are not replaced.
template <typename T>
[[gnu::always_inline]] inline RowSum<T> weigh_row_of(T* __restrict row, int64_t visible, int64_t n, T scale,
                                                     MaskRow<T> mask, T before) {
  const int64_t end = end_of_vectors<T>(visible, n);
  scale_row(row, visible, end, scale, mask);
  const T largest = largest_of(row, end), most = largest > before ? largest : before;
  if (most == -kInfinity<T>) return {most, T(0)};
  exp_row(row, end, most);
  const T sum = sum_of_row(row, end);
  for (int64_t i = visible; i < n; ++i) row[i] = 0;
  return {most, sum};
}
// Replaces a row of n products, of which the first `visible` are scores, by the exponentials of the scores less
// `logsumexp`, and zeros.
template <typename T>
[[gnu::always_inline]] inline void weights_of_row(T* __restrict row, int64_t visible, int64_t n, T scale,
                                                  MaskRow<T> mask, T logsumexp) {
  const int64_t end = end_of_vectors<T>(visible, n);
  scale_row(row, visible, end, scale, mask);
  exp_row(row, end, logsumexp);
  for (int64_t i = visible; i < n; ++i) row[i] = 0;
}
// logs[i] = most[i] + log(sums[i]).
template <typename T>
[[gnu::always_inline]] inline void add_logs_of(int64_t n, const T* most, const T* sums, T* __restrict logs) {
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (sizeof(T) == 4)
      logs[i] = most[i] + ::logf(sums[i]);
    else
      logs[i] = most[i] + ::log(sums[i]);
  }
}
// Overloads rather than templates, because a template's clones would not use libm's vector forms.
TT_CLONES static RowSum<float> weigh_row(float* row, int64_t visible, int64_t n, float scale, MaskRow<float> mask,
                                         float before) {
  return weigh_row_of(row, visible, n, scale, mask, before);
}
TT_CLONES static RowSum<double> weigh_row(double* row, int64_t visible, int64_t n, double scale, MaskRow<double> mask,
                                          double before) {
  return weigh_row_of(row, visible, n, scale, mask, before);
}
TT_CLONES static void row_weights(float* row, int64_t visible, int64_t n, float scale, MaskRow<float> mask,
                                  float logsumexp) {
  weights_of_row(row, visible, n, scale, mask, logsumexp);
}
TT_CLONES static void row_weights(double* row, int64_t visible, int64_t n, double scale, MaskRow<double> mask,
                                  double logsumexp) {
  weights_of_row(row, visible, n, scale, mask, logsumexp);
}
TT_CLONES static void add_logs(int64_t n, const float* most, const float* sums, float* logs) {
  add_logs_of(n, most, sums, logs);
}
TT_CLONES static void add_logs(int64_t n, const double* most, const double* sums, double* logs) {
  add_logs_of(n, most, sums, logs);
}
// The gradients of scores that the mask has replaced, also where the row's are NaN.
template <typename T>
void clear_excluded(T* grads, int64_t n, MaskRow<T> mask) {
  for (int64_t i = 0; i < n; ++i) grads[i] = mask.excluded[i * mask.step] ? T(0) : grads[i];
}
template <typename T>
TT_CLONES T sum_of(const T* x, int64_t n) {
  return sum_of_row(x, n);
}
// 0, or NaN if an element is infinite or NaN.
template <typename T>
TT_CLONES T zero_or_nan(const T* x, int64_t n) {
  return fold(
      n, T(0), [&](auto& sum, int64_t i) { sum += lanes_at(x + i) * T(0); },
      [&](T& sum, int64_t i) { sum += x[i] * T(0); }, [](auto& sum, const auto& x) { sum += x; });
}
// The scalar product, in T.
template <typename T, typename In>
TT_CLONES T dot_of(const In* x, const In* y, int64_t n) {
  constexpr int kTotals = 64 / sizeof(T);
  T totals[kTotals] = {};
  const auto product = [&](int64_t i) { return static_cast<T>(x[i]) * static_cast<T>(y[i]); };
  int64_t i = 0;
  for (; i + kTotals <= n; i += kTotals) {
    for (int j = 0; j < kTotals; ++j) totals[j] += product(i + j);
  }
  for (int j = 0; i < n; ++i, ++j) totals[j] += product(i);
  return join_lanes<kTotals>(totals, [](T a, T b) { return a + b; });
}

}  // namespace tt::cpu::attention_blocks
