// PowerSum and ExpSum: reductions (reduce_driver.h) whose transcendental function costs more than reading the
// elements. They use the common driver for conversion and iteration, and call the function in a plain loop.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/common/math/exponential.h"
#include "kernels/common/math/vector_math.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/loops/reduce_driver.h"
#include "kernels/cpu/loops/reduce_fold.h"

namespace tt::cpu {

// Sum of |x| to the power p.
template <typename T>
struct PowerSum {
  using Value = T;
  using Total = double;
  static constexpr int64_t kRows = 16;
  static constexpr bool kRawBytes = false;
  T p;

  Total init() const { return 0; }
  void block(Total& total, const T* x, int64_t n, int64_t) const {
    for (int64_t i = 0; i < n; ++i) total += std::pow(std::abs(x[i]), p);
  }
  void columns(Total* totals, const T* x, int64_t stride, int64_t rows, int64_t cols, int64_t) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < cols; ++j) totals[j] += std::pow(std::abs(x[r * stride + j]), p);
    }
  }
  void merge(Total& total, const Total& later) const { total += later; }
};

// The largest element so far, and the sum of exp(x - largest).
template <typename T>
struct ExpTotal {
  T largest;
  double sum;

  // The value subtracted from exponents; 0 if the largest element is not finite.
  T shift() const { return std::isfinite(largest) ? largest : T(0); }
  void raise(T to) {
    if (!(to > largest) && to == to) return;
    const T before = shift();
    largest = to;
    // Before the first element, the exponential may be infinite.
    if (sum != 0) sum *= std::exp(static_cast<double>(before) - static_cast<double>(shift()));
  }
};

template <typename T>
[[gnu::always_inline]] inline T exponential(T x) {
  if constexpr (sizeof(T) == 4)
    return math::exponential(x);
  else
    return std::exp(x);
}

template <typename T>
TT_CLONES double sum_exp(const T* __restrict x, int64_t n, T shift) {
  constexpr int64_t kLanes = 128 / sizeof(T);
  T lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lane[l] += exponential(x[i + l] - shift);
  }
  double sum = 0;
  for (; i < n; ++i) sum += exponential(x[i] - shift);
  for (int64_t l = 0; l < kLanes; ++l) sum += lane[l];
  return sum;
}

template <typename T>
TT_CLONES void sum_exp_columns(ExpTotal<T>* __restrict totals, const T* __restrict x, int64_t stride, int64_t rows,
                               int64_t cols) {
  T largest[kTileColumns], shift[kTileColumns], scale[kTileColumns], sum[kTileColumns];
  for (int64_t j = 0; j < cols; ++j) {
    largest[j] = scale[j] = totals[j].largest;
    sum[j] = 0;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const T* __restrict row = x + r * stride;
    for (int64_t j = 0; j < cols; ++j) largest[j] = Largest<T>::combine(largest[j], row[j]);
  }
  for (int64_t j = 0; j < cols; ++j) {
    // Shifts are 0 if the largest element is not finite.
    const T before = scale[j] - scale[j] == 0 ? scale[j] : T(0);
    shift[j] = largest[j] - largest[j] == 0 ? largest[j] : T(0);
    scale[j] = exponential(before - shift[j]);
  }
  for (int64_t r = 0; r < rows; ++r) {
    const T* __restrict row = x + r * stride;
    for (int64_t j = 0; j < cols; ++j) sum[j] += exponential(row[j] - shift[j]);
  }
  for (int64_t j = 0; j < cols; ++j) {
    totals[j].largest = largest[j];
    totals[j].sum = (totals[j].sum == 0 ? 0 : totals[j].sum * scale[j]) + sum[j];
  }
}

// log(sum(exp(x))), without overflow.
template <typename T>
struct ExpSum {
  using Value = T;
  using Total = ExpTotal<T>;
  static constexpr int64_t kRows = 16;
  static constexpr bool kRawBytes = false;

  Total init() const { return {-std::numeric_limits<T>::infinity(), 0}; }
  void block(Total& total, const T* x, int64_t n, int64_t) const {
    constexpr int64_t kPart = 1024;  // stays in the L1 cache between the two passes
    for (int64_t i = 0; i < n; i += kPart) {
      const int64_t m = std::min(kPart, n - i);
      T largest = Largest<T>::init();
      fold_block<Largest<T>>(largest, x + i, m);
      total.raise(largest);
      total.sum += sum_exp(x + i, m, total.shift());
    }
  }
  void columns(Total* totals, const T* x, int64_t stride, int64_t rows, int64_t cols, int64_t) const {
    sum_exp_columns(totals, x, stride, rows, cols);
  }
  void merge(Total& total, Total later) const {
    total.raise(later.largest);
    later.raise(total.largest);
    total.sum += later.sum;
  }
};

}  // namespace tt::cpu
