// Extremum: the reduction (reduce_driver.h) to the largest or smallest element and its position, as arg_reduce.h
// defines them. Requires a plan of Order::kLogical.
#pragma once

#include "kernels/common/reduce/arg_reduce.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/loops/reduce_driver.h"
#include "kernels/cpu/loops/reduce_fold.h"

namespace tt::cpu {

template <typename T, bool kMax>
struct Precedes {
  TT_INLINE bool test(T x, T best) { return (kMax ? x > best : x < best) | ((x != x) & (best == best)); }
};

// The first i with x[i] == value, where NaN equals NaN. Requires that it exists.
template <typename T>
TT_CLONES int64_t locate(const T* __restrict x, int64_t n, T value) {
  constexpr int64_t kChunk = 256 / sizeof(T);
  const bool nan = value != value;
  int64_t i = 0;
  for (; i + kChunk <= n; i += kChunk) {
    int hits = 0;
    if (nan) {
      for (int64_t l = 0; l < kChunk; ++l) hits += x[i + l] != x[i + l];
    } else {
      for (int64_t l = 0; l < kChunk; ++l) hits += x[i + l] == value;
    }
    if (hits) break;
  }
  while (i < n - 1 && !(nan ? x[i] != x[i] : x[i] == value)) ++i;
  return i;
}

// The type of a row's index within a tile of kRows rows. It has the value's width, so that vectors of values and of
// indices have the same number of lanes.
template <typename T>
using LaneIndex = std::conditional_t<sizeof(T) == 8, int64_t, std::conditional_t<sizeof(T) == 4, int32_t, uint8_t>>;

// Processes columns [j, ...) in groups of kGroup, which stay in registers over all rows. Returns the first remaining
// column.
template <typename T, bool kMax, int64_t kGroup>
TT_INLINE int64_t find_in_groups(T* __restrict best, LaneIndex<T>* __restrict at, const T* __restrict x, int64_t stride,
                                 int64_t rows, int64_t j, int64_t cols) {
  using Index = LaneIndex<T>;
  for (; j + kGroup <= cols; j += kGroup) {
    T value[kGroup];
    Index positions[kGroup];
    for (int64_t l = 0; l < kGroup; ++l) {
      value[l] = x[j + l];
      positions[l] = 0;
    }
    for (int64_t r = 1; r < rows; ++r) {
      const T* __restrict row = x + r * stride + j;
      const Index index = static_cast<Index>(r);
      for (int64_t l = 0; l < kGroup; ++l) {
        const bool beats = Precedes<T, kMax>::test(row[l], value[l]);
        value[l] = beats ? row[l] : value[l];
        positions[l] = beats ? index : positions[l];
      }
    }
    for (int64_t l = 0; l < kGroup; ++l) {
      best[j + l] = value[l];
      at[j + l] = positions[l];
    }
  }
  return j;
}

template <typename T, bool kMax>
TT_CLONES void find_columns(ExtremumTotal<T>* __restrict totals, const T* __restrict x, int64_t stride, int64_t rows,
                            int64_t cols, int64_t position) {
  T best[kTileColumns];
  LaneIndex<T> at[kTileColumns];
  const int64_t done = find_in_groups<T, kMax, 256 / sizeof(T)>(best, at, x, stride, rows, 0, cols);
  find_in_groups<T, kMax, 1>(best, at, x, stride, rows, done, cols);
  for (int64_t j = 0; j < cols; ++j) {
    const bool beats = (totals[j].position < 0) | Precedes<T, kMax>::test(best[j], totals[j].value);
    totals[j].value = beats ? best[j] : totals[j].value;
    totals[j].position = beats ? position + at[j] : totals[j].position;
  }
}

template <typename T, bool kMax>
struct Extremum {
  using Value = T;
  using Total = ExtremumTotal<T>;
  using Fold = std::conditional_t<kMax, Largest<T>, Smallest<T>>;
  static constexpr int64_t kRows = 32;
  static constexpr bool kRawBytes = false;

  Total init() const { return {T{}, -1}; }
  void block(Total& total, const T* x, int64_t n, int64_t position) const {
    T best = Fold::init();
    fold_block<Fold>(best, x, n);
    if (total.position >= 0 && !Precedes<T, kMax>::test(best, total.value)) return;
    total = {best, position + locate(x, n, best)};
  }
  void columns(Total* totals, const T* x, int64_t stride, int64_t rows, int64_t cols, int64_t position) const {
    find_columns<T, kMax>(totals, x, stride, rows, cols, position);
  }
  void merge(Total& total, const Total& later) const {
    if (later.position >= 0 && (total.position < 0 || Precedes<T, kMax>::test(later.value, total.value))) total = later;
  }
};

}  // namespace tt::cpu
