// Row: a row of elements that a group of threads reads several times, kept in registers if it is short enough.
//
//   const Row<T, kLanes> row(group, n, x, stride);
//   for_each_element([&](int64_t i, C value) { sum += value; }, row);
//   write(y, stride, [&](int64_t i, C value) { return value / sum; }, row);
//
// A thread processes kLanes adjacent elements at once. If kLanes > 1, the stride is 1 and rows are aligned (vectors.h).
// Several rows with equal n and kLanes can be processed together.
#pragma once

#include <algorithm>

#include "kernels/cuda/launch/floating.h"
#include "kernels/cuda/launch/vectors.h"

namespace tt::cuda {

// A group of one thread, for rows whose elements are interleaved with other rows.
class SingleThreadGroup {
 public:
  TT_FUNCTION int rank() const { return 0; }
  TT_FUNCTION int size() const { return 1; }
  template <typename T, typename Op>
  TT_FUNCTION T reduce(T value, Op) const {
    return value;
  }
};

template <typename T, int kLanes>
TT_DEVICE Vector<T, kLanes> load_raw(const T* x, int64_t stride, int64_t i) {
  if constexpr (kLanes == 1)
    return {{x[i * stride]}};
  else
    return load_vector<T, kLanes>(x + i);
}
template <typename T, int kLanes>
TT_DEVICE Lanes<AccumulateType<T>, kLanes> load_lanes(const T* x, int64_t stride, int64_t i) {
  return lanes_of<AccumulateType<T>>(load_raw<T, kLanes>(x, stride, i));
}

template <typename T, int kLanes>
TT_DEVICE void store_lanes(T* y, int64_t stride, int64_t i, const Lanes<AccumulateType<T>, kLanes>& lanes) {
  if constexpr (kLanes == 1) {
    y[i * stride] = convert<T>(lanes.at[0]);
  } else {
    store_vector(y + i, vector_of<T>(lanes));
  }
}

// Number of elements that a thread keeps in registers: of one row (kMaxKeptOneRow), or of each of two rows
// (kMaxKeptTwoRows). More would not fit. With one lane, a narrow element also takes a whole register.
template <typename T, int kLanes>
inline constexpr int kMaxKeptOneRow = 64 / (kLanes == 1 ? sizeof(AccumulateType<T>) : sizeof(T));
template <typename T>
inline constexpr int kMaxKeptTwoRows = 64 / sizeof(AccumulateType<T>);

template <typename T, int kLanes, int kMaxKept = kMaxKeptOneRow<T, kLanes>>
class Row {
 public:
  static constexpr int kSteps = kMaxKept / kLanes;
  using LaneValues = Lanes<AccumulateType<T>, kLanes>;

  template <typename G>
  TT_DEVICE Row(const G& group, int64_t n, const T* x, int64_t stride)
      : n_(n), rank_(group.rank()), size_(group.size()), x_(x), stride_(stride) {
    if (!fits()) return;
    TT_UNROLL for (int step = 0; step < kSteps; ++step) {
      if (index(step) < n) kept_[step] = load_raw<T, kLanes>(x_, stride_, index(step));
    }
  }
  TT_DEVICE bool fits() const { return n_ <= int64_t{kMaxKept} * size_; }
  TT_DEVICE int64_t n() const { return n_; }
  TT_DEVICE int64_t index(int64_t step) const { return (rank_ + step * size_) * kLanes; }
  TT_DEVICE LaneValues load(int64_t i) const { return load_lanes<T, kLanes>(x_, stride_, i); }
  TT_DEVICE LaneValues kept(int step) const { return lanes_of<AccumulateType<T>>(kept_[step]); }

 private:
  int64_t n_;
  int rank_, size_;
  const T* x_;
  int64_t stride_;
  Vector<T, kLanes> kept_[kSteps];  // not converted, so that twice as many 16-bit elements fit
};

// Calls take(i, lanes...) for each vector of this thread. `i` is the index of the vector's first element; there is one
// Lanes argument per row.
template <typename F, typename T, int kLanes, int kMaxKept, typename... Rows>
TT_DEVICE void for_each_vector(F take, const Row<T, kLanes, kMaxKept>& row, const Rows&... rows) {
  if (row.fits()) {
    TT_UNROLL for (int step = 0; step < Row<T, kLanes, kMaxKept>::kSteps; ++step) {
      const int64_t i = row.index(step);
      if (i < row.n()) take(i, row.kept(step), rows.kept(step)...);
    }
  } else {
    for (int64_t step = 0; row.index(step) < row.n(); ++step) {
      const int64_t i = row.index(step);
      take(i, row.load(i), rows.load(i)...);
    }
  }
}

// Calls f(i, element i of each row) for this thread's elements.
template <typename F, typename T, int kLanes, int kMaxKept, typename... Rows>
TT_DEVICE void for_each_element(F f, const Row<T, kLanes, kMaxKept>& row, const Rows&... rows) {
  for_each_vector(
      [&](int64_t i, const auto&... lanes) { TT_UNROLL for (int l = 0; l < kLanes; ++l) f(i + l, lanes.at[l]...); },
      row, rows...);
}

// Computes y[i] = f(i, element i of each row) for this thread's elements.
template <typename F, typename T, int kLanes, int kMaxKept, typename... Rows>
TT_DEVICE void write(T* y, int64_t stride, F f, const Row<T, kLanes, kMaxKept>& row, const Rows&... rows) {
  for_each_vector(
      [&](int64_t i, const auto&... lanes) {
        Lanes<AccumulateType<T>, kLanes> results;
        TT_UNROLL for (int l = 0; l < kLanes; ++l) results.at[l] = f(i + l, lanes.at[l]...);
        store_lanes<T, kLanes>(y, stride, i, results);
      },
      row, rows...);
}

template <typename T>
inline constexpr int kVectorLanes = Vector<T>::kLanes;

// Whether consecutive rows of n elements can be read as vectors.
template <typename... Pointers>
bool is_vectorizable(int64_t n, size_t item, Pointers... starts) {
  return n * static_cast<int64_t>(item) % 16 == 0 && (is_aligned(starts) && ...);
}

// Returns the number of threads that can keep n elements, if each thread keeps `kept`; at most kMaxThreads.
inline int64_t row_threads(int64_t n, int64_t kept) {
  constexpr int64_t kWarpThreads = 32, kMaxThreads = 1024;
  const int64_t threads = (n + kept - 1) / kept;
  return std::clamp((threads + kWarpThreads - 1) / kWarpThreads * kWarpThreads, kWarpThreads, kMaxThreads);
}

// Like for_each_group(), with enough threads to keep a row of n elements if each thread keeps kMaxKept.
#ifdef __CUDACC__
template <int kMaxKept, typename F>
void for_each_row(const Queue& queue, int64_t rows, int64_t n, F f) {
  if (rows > 0) launch(queue, &run_groups<F>, std::min(rows, kMaxBlocks), row_threads(n, kMaxKept), rows, f);
}
#else
template <int kMaxKept, typename F>
void for_each_row(const Queue& queue, int64_t rows, int64_t n, F f) {
  for_each_group(queue, rows, n, f);
}
#endif

}  // namespace tt::cuda
