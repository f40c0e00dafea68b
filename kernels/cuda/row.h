// Row: a row of elements that a group of threads goes over several times, in registers where it is short enough.
#pragma once

#include "kernels/cuda/launch.h"

namespace tt::cuda {

// One thread as a group: for rows whose neighbours are other rows' elements.
class Alone {
 public:
  TT_FUNCTION int rank() const { return 0; }
  TT_FUNCTION int size() const { return 1; }
  template <typename T, typename Op>
  TT_FUNCTION T reduce(T value, Op) const {
    return value;
  }
};

// load(i) gives element i as a C. Made and used by all threads of a group at once.
template <typename C, typename Load>
class Row {
 public:
  template <typename G>
  TT_DEVICE Row(const G& group, int64_t n, Load load)
      : n_(n), rank_(group.rank()), size_(group.size()), fits_(n <= int64_t{kMost} * group.size()), load_(load) {
    if (!fits_) return;
    TT_UNROLL for (int k = 0; k < kMost; ++k) {
      const int64_t i = rank_ + int64_t{k} * size_;
      kept_[k] = i < n_ ? load_(i) : C(0);
    }
  }
  TT_DEVICE bool fits() const { return fits_; }
  // Calls f(i, element i) for this thread's share.
  template <typename F>
  TT_DEVICE void each(F f) const {
    if (fits_) {
      TT_UNROLL for (int k = 0; k < kMost; ++k) {
        const int64_t i = rank_ + int64_t{k} * size_;
        if (i < n_) f(i, kept_[k]);
      }
    } else {
      for (int64_t i = rank_; i < n_; i += size_) f(i, load_(i));
    }
  }

 private:
  static constexpr int kMost = 16;  // of a thread
  int64_t n_;
  int rank_, size_;
  bool fits_;
  Load load_;
  C kept_[kMost];
};

}  // namespace tt::cuda
