// Fold<M>: the vectorised reduction (reduce_driver.h) by a monoid M.
//
// A monoid is stateless and defines:
//   Value, Total       as a reduction does
//   kIdentity          the neutral Value of combine()
//   kRawBytes          as a reduction does
//   lift(Value)        maps an element before it is combined
//   combine(a, b)      associative and commutative
//   init() -> Total,  add(Total&, Value part),  merge(Total&, Total)
// A Value must be able to hold 64 combined elements, a Total any number.
#pragma once

#include <algorithm>
#include <limits>

#include "engine/schema/half.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/loops/reduce_driver.h"

#define TT_INLINE [[gnu::always_inline]] static inline

namespace tt::cpu {

// Elements are distributed over enough lanes to hide the latency of combine(). The inner loops have constant lengths,
// so that the compiler turns each into a few vector instructions. After kRounds rounds the lanes are added to wide
// totals, which are merged in a tree at the end. The rounding error of a sum is about that of pairwise summation, and
// loads never wait for a total.
//
// T is the type of elements in memory: Value, or a type that is widened to Value in a register.
inline constexpr int64_t kRounds = 64;
template <typename Value>
inline constexpr int64_t kFoldLanes = 256 / sizeof(Value);

// Reduces a short input, for which initialising and merging wide totals would take longer than adding the elements.
// Combines lanes as Values while a Value contains at most kRounds elements.
template <typename M, typename T>
TT_INLINE void fold_short(typename M::Total& total, const T* __restrict x, int64_t n) {
  using Value = typename M::Value;
  constexpr int64_t kLanes = kFoldLanes<Value>;
  if (n <= 16) {
    for (int64_t j = 0; j < n; ++j) M::add(total, M::lift(static_cast<Value>(x[j])));
    return;
  }
  Value lane[kLanes];
  for (int64_t l = 0; l < kLanes; ++l) lane[l] = M::kIdentity;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lane[l] = M::combine(lane[l], M::lift(static_cast<Value>(x[i + l])));
  }
  for (int64_t l = 0; i < n; ++i, ++l) lane[l] = M::combine(lane[l], M::lift(static_cast<Value>(x[i])));
  int64_t lanes = kLanes;
  for (int64_t met = n / kLanes + 1; lanes > 1 && 2 * met <= kRounds; met *= 2) {
    lanes /= 2;
    for (int64_t l = 0; l < lanes; ++l) lane[l] = M::combine(lane[l], lane[l + lanes]);
  }
  constexpr int64_t kMerged = 8;  // what most rows end with: a tree, whose additions do not wait for each other
  if (lanes != kMerged) {
    for (int64_t l = 0; l < lanes; ++l) M::add(total, lane[l]);
    return;
  }
  typename M::Total wide[kMerged];
  for (int64_t l = 0; l < kMerged; ++l) wide[l] = M::init();
  for (int64_t l = 0; l < kMerged; ++l) M::add(wide[l], lane[l]);
  for (int64_t half = kMerged / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) M::merge(wide[l], wide[l + half]);
  }
  M::merge(total, wide[0]);
}

// The elements after which the lanes are added to the wide totals.
template <typename Value>
inline constexpr int64_t kFoldChunk = kRounds* kFoldLanes<Value>;

template <typename M, typename T>
TT_CLONES void fold_few(typename M::Total& total, const T* __restrict x, int64_t n) {
  fold_short<M>(total, x, n);
}

// Adds n <= kFoldChunk elements to the wide totals of the lanes.
template <typename M, typename T>
TT_CLONES void fold_chunk(typename M::Total* __restrict wide, const T* __restrict x, int64_t n) {
  using Value = typename M::Value;
  constexpr int64_t kLanes = kFoldLanes<Value>;
  int64_t i = 0;
  if (n >= kLanes) {
    Value lane[kLanes];
    for (int64_t l = 0; l < kLanes; ++l) lane[l] = M::lift(static_cast<Value>(x[l]));
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      for (int64_t l = 0; l < kLanes; ++l) lane[l] = M::combine(lane[l], M::lift(static_cast<Value>(x[i + l])));
    }
    for (int64_t l = 0; l < kLanes; ++l) M::add(wide[l], lane[l]);
  }
  for (int64_t l = 0; i < n; ++i, ++l) M::add(wide[l], M::lift(static_cast<Value>(x[i])));
}

// Reduces n elements; read(first, count) returns those from `first` on, of which at most kFoldChunk are read at a time.
template <typename M, typename T, typename Read>
void fold_read(typename M::Total& total, int64_t n, Read read) {
  using Value = typename M::Value;
  constexpr int64_t kLanes = kFoldLanes<Value>;
  if (n < 8 * kLanes) return fold_few<M, T>(total, read(int64_t{0}, n), n);
  typename M::Total wide[kLanes];
  for (int64_t l = 0; l < kLanes; ++l) wide[l] = M::init();
  for (int64_t first = 0; first < n; first += kFoldChunk<Value>) {
    const int64_t count = std::min(kFoldChunk<Value>, n - first);
    fold_chunk<M, T>(wide, read(first, count), count);
  }
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) M::merge(wide[l], wide[l + half]);
  }
  M::merge(total, wide[0]);
}

template <typename M, typename T>
void fold_block(typename M::Total& total, const T* x, int64_t n) {
  fold_read<M, T>(total, n, [x](int64_t first, int64_t) { return x + first; });
}

// Processes columns [j, ...) in groups of kLanes, which stay in registers over all rows. Returns the first remaining
// column.
template <typename M, int64_t kLanes, typename T>
TT_INLINE int64_t fold_column_groups(typename M::Value* __restrict part, const T* __restrict x, int64_t stride,
                                     int64_t rows, int64_t j, int64_t cols) {
  using Value = typename M::Value;
  for (; j + kLanes <= cols; j += kLanes) {
    Value lane[kLanes];
    for (int64_t l = 0; l < kLanes; ++l) lane[l] = M::lift(static_cast<Value>(x[j + l]));
    for (int64_t r = 1; r < rows; ++r) {
      const T* __restrict row = x + r * stride + j;
      for (int64_t l = 0; l < kLanes; ++l) lane[l] = M::combine(lane[l], M::lift(static_cast<Value>(row[l])));
    }
    for (int64_t l = 0; l < kLanes; ++l) part[j + l] = lane[l];
  }
  return j;
}

template <typename M, typename T>
TT_CLONES void fold_columns(typename M::Total* __restrict totals, const T* __restrict x, int64_t stride, int64_t rows,
                            int64_t cols) {
  using Value = typename M::Value;
  Value part[kTileColumns];
  int64_t j = fold_column_groups<M, 512 / sizeof(Value)>(part, x, stride, rows, 0, cols);
  j = fold_column_groups<M, 128 / sizeof(Value)>(part, x, stride, rows, j, cols);
  if (j < cols) {
    for (int64_t i = j; i < cols; ++i) part[i] = M::lift(static_cast<Value>(x[i]));
    for (int64_t r = 1; r < rows; ++r) {
      const T* __restrict row = x + r * stride;
      for (int64_t i = j; i < cols; ++i) part[i] = M::combine(part[i], M::lift(static_cast<Value>(row[i])));
    }
  }
  for (j = 0; j < cols; ++j) M::add(totals[j], part[j]);
}

// T is the type of elements in memory: Value or BFloat16.
template <typename M, typename T = typename M::Value>
struct Fold {
  using Value = T;
  using Total = typename M::Total;
  static constexpr int64_t kRows = 32;
  static constexpr bool kRawBytes = M::kRawBytes;
  Total init() const { return M::init(); }
  static constexpr int64_t kChunk = kFoldChunk<typename M::Value>;
  void block(Total& total, const Value* x, int64_t n, int64_t) const { fold_block<M>(total, x, n); }
  // As block(), of elements that read(first, count) returns, at most kChunk at a time.
  template <typename Read>
  void block_of(Total& total, int64_t n, Read read) const {
    fold_read<M, T>(total, n, read);
  }
  void columns(Total* totals, const Value* x, int64_t stride, int64_t rows, int64_t cols, int64_t) const {
    fold_columns<M>(totals, x, stride, rows, cols);
  }
  void merge(Total& total, const Total& later) const { M::merge(total, later); }
};

// --- element maps -------------------------------------------------------------------------

struct Identity {
  template <typename T>
  TT_INLINE T of(T x) {
    return x;
  }
};
struct Squared {
  template <typename T>
  TT_INLINE T of(T x) {
    return x * x;
  }
};
struct Magnitude {
  template <typename T>
  TT_INLINE T of(T x) {
    return x < T{} ? -x : x;
  }
};
struct NotNaN {  // replaces NaN by 0
  template <typename T>
  TT_INLINE T of(T x) {
    return x == x ? x : T{};
  }
};
struct Nonzero {
  template <typename T>
  TT_INLINE T of(T x) {
    return x != T{} ? T{1} : T{};
  }
};

// --- monoids ------------------------------------------------------------------------------

// Sums of blocks of floats are added in double, so that the error does not grow with the number of blocks.
template <typename T>
using SumTotal = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;

template <typename T, typename Lift = Identity>
struct Sum {
  using Value = T;
  using Total = std::conditional_t<std::is_same_v<Lift, Nonzero>, int64_t, SumTotal<T>>;
  static constexpr T kIdentity = 0;
  static constexpr bool kRawBytes = std::is_same_v<Lift, Nonzero>;
  TT_INLINE T lift(T x) { return Lift::of(x); }
  TT_INLINE T combine(T a, T b) { return a + b; }
  TT_INLINE Total init() { return 0; }
  TT_INLINE void add(Total& total, T part) { total += static_cast<Total>(part); }
  TT_INLINE void merge(Total& total, Total later) { total += later; }
};

// The number of nonzero elements; any() and all() are derived from it.
template <typename T>
using Count = Sum<T, Nonzero>;

template <typename T>
struct Product {
  using Value = T;
  using Total = T;
  static constexpr T kIdentity = 1;
  static constexpr bool kRawBytes = false;
  TT_INLINE T lift(T x) { return x; }
  TT_INLINE T combine(T a, T b) { return a * b; }
  TT_INLINE Total init() { return 1; }
  TT_INLINE void add(Total& total, T part) { total *= part; }
  TT_INLINE void merge(Total& total, Total later) { total *= later; }
};

// NaN propagates.
template <typename T, typename Lift = Identity>
struct Largest {
  using Value = T;
  using Total = T;
  static constexpr T kIdentity =
      std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  static constexpr bool kRawBytes = false;
  TT_INLINE T lift(T x) { return Lift::of(x); }
  TT_INLINE T combine(T a, T x) {
    const T larger = x > a ? x : a;  // one instruction; returns a if x is NaN
    return x != x ? x : larger;
  }
  TT_INLINE Total init() { return kIdentity; }
  TT_INLINE void add(Total& total, T part) { total = combine(total, part); }
  TT_INLINE void merge(Total& total, Total later) { total = combine(total, later); }
};

template <typename T, typename Lift = Identity>
struct Smallest {
  using Value = T;
  using Total = T;
  static constexpr T kIdentity =
      std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  static constexpr bool kRawBytes = false;
  TT_INLINE T lift(T x) { return Lift::of(x); }
  TT_INLINE T combine(T a, T x) {
    const T smaller = x < a ? x : a;
    return x != x ? x : smaller;
  }
  TT_INLINE Total init() { return kIdentity; }
  TT_INLINE void add(Total& total, T part) { total = combine(total, part); }
  TT_INLINE void merge(Total& total, Total later) { total = combine(total, later); }
};

}  // namespace tt::cpu
