// Moments: the reduction (reduce_driver.h) to mean and sum of squared deviations.
//
// Each block is summed twice while it is in the cache: first its elements, then their deviations from the block's mean.
// Blocks are merged by Chan's formula (Chan, Golub, LeVeque: "Updating formulae and a pairwise algorithm for computing
// sample variances", 1979). The result is as accurate as two passes over the whole input.
#pragma once

#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/loops/reduce_driver.h"
#include "kernels/cpu/loops/reduce_fold.h"

namespace tt::cpu {

struct MomentsTotal {
  double count;
  double mean;
  double squares;  // sum of squared deviations from the mean

  void merge(const MomentsTotal& other) {
    if (other.count == 0) return;
    double sum = count + other.count, delta = other.mean - mean;
    mean += delta * (other.count / sum);
    squares += other.squares + delta * delta * (count * other.count / sum);
    count = sum;
  }
};

// Computes the sums of x - mean and of (x - mean)^2 over a block.
template <typename T>
TT_CLONES void sum_deviations(const T* __restrict x, int64_t n, T mean, double* sum, double* squares) {
  constexpr int64_t kLanes = 128 / sizeof(T);
  T first[kLanes] = {}, second[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) {
      T d = x[i + l] - mean;
      first[l] += d;
      second[l] += d * d;
    }
  }
  for (int64_t l = 0; i < n; ++i, ++l) {
    T d = x[i] - mean;
    first[l] += d;
    second[l] += d * d;
  }
  *sum = *squares = 0;
  for (int64_t l = 0; l < kLanes; ++l) {
    *sum += first[l];
    *squares += second[l];
  }
}

template <typename T>
TT_CLONES void add_moments(MomentsTotal* __restrict totals, const T* __restrict x, int64_t stride, int64_t rows,
                           int64_t cols) {
  T mean[kTileColumns], first[kTileColumns], second[kTileColumns];
  for (int64_t j = 0; j < cols; ++j) mean[j] = first[j] = second[j] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const T* __restrict row = x + r * stride;
    for (int64_t j = 0; j < cols; ++j) mean[j] += row[j];
  }
  const T share = T(1) / static_cast<T>(rows);
  for (int64_t j = 0; j < cols; ++j) mean[j] *= share;
  for (int64_t r = 0; r < rows; ++r) {
    const T* __restrict row = x + r * stride;
    for (int64_t j = 0; j < cols; ++j) {
      T d = row[j] - mean[j];
      first[j] += d;
      second[j] += d * d;
    }
  }
  // All columns have the same count, so the divisions of merge() are done once.
  const double before = totals[0].count, count = before + rows;
  const double weight = rows / count, cross = before * rows / count, inverse = 1.0 / rows;
  for (int64_t j = 0; j < cols; ++j) {
    double correction = first[j] * inverse;  // the rounding error of the rows' mean
    double delta = mean[j] + correction - totals[j].mean;
    totals[j].squares += second[j] - first[j] * correction + delta * delta * cross;
    totals[j].mean += delta * weight;
    totals[j].count = count;
  }
}

template <typename T>
struct Moments {
  using Value = T;
  using Total = MomentsTotal;
  static constexpr int64_t kRows = 64;
  static constexpr bool kRawBytes = false;

  Total init() const { return {0, 0, 0}; }
  void block(Total& total, const T* x, int64_t n, int64_t) const {
    constexpr int64_t kPart = 2048;  // stays in the L1 cache between the two sums
    for (int64_t i = 0; i < n; i += kPart) {
      int64_t m = std::min(kPart, n - i);
      double sum = 0, first, second;
      fold_block<Sum<T>>(sum, x + i, m);
      T mean = static_cast<T>(sum / m);
      sum_deviations(x + i, m, mean, &first, &second);
      total.merge({static_cast<double>(m), mean + first / m, second - first * (first / m)});
    }
  }
  void columns(Total* totals, const T* x, int64_t stride, int64_t rows, int64_t cols, int64_t) const {
    add_moments(totals, x, stride, rows, cols);
  }
  void merge(Total& total, const Total& later) const { total.merge(later); }
};

}  // namespace tt::cpu
