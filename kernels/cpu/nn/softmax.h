// SoftmaxVectors: the vectors (one-dimensional slices) of softmax and cross entropy, divided into groups for the thread
// pool.
#pragma once

#include <algorithm>

#include "engine/device/parallel.h"
#include "kernels/common/iteration/dim_split.h"
#include "kernels/cpu/loops/softmax_loops.h"

namespace tt::cpu {

inline constexpr int64_t kGrain = 1 << 15;  // minimum number of elements per core: about 10 us
inline constexpr int64_t kColumns = 64;     // vectors that the loops process together

// Vectors of n elements along one dimension of a contiguous tensor.
struct SoftmaxVectors : DimSplit {
  using DimSplit::DimSplit;

  int64_t vectors() const { return outer * inner; }
  // Index of the vector that starts at an offset.
  int64_t index_of(int64_t offset) const { return offset / (n * inner) * inner + offset % (n * inner) % inner; }
  // Calls f(vectors, offset of the first vector) for each group of vectors, on the thread pool.
  template <typename F>
  void for_each_group(F&& f) const {
    if (n == 0) return;
    const int64_t grain = std::max<int64_t>(1, kGrain / n);
    if (inner == 1) {
      parallel_for(outer, grain, [&](int64_t begin, int64_t end) { f(Vectors{n, end - begin, 0}, begin * n); });
      return;
    }
    const int64_t groups = (inner + kColumns - 1) / kColumns;
    parallel_for(outer * groups, std::max<int64_t>(1, grain / kColumns), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = i % groups * kColumns;
        f(Vectors{n, std::min(kColumns, inner - column), inner}, i / groups * n * inner + column);
      }
    });
  }
};

}  // namespace tt::cpu
