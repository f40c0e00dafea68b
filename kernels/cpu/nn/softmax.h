// Divides the vectors of softmax and cross entropy, along one dimension, into groups for the pool's threads.
#pragma once

#include <algorithm>

#include "engine/device/parallel.h"
#include "kernels/common/iteration/dim_split.h"
#include "kernels/cpu/loops/softmax_loops.h"

namespace tt::cpu {

inline constexpr int64_t kGrain = 1 << 15;  // elements: about 10 us; below this a second core is not used
inline constexpr int64_t kColumns = 64;     // vectors that the loops process together

// The layout of the vectors: softmax runs along n.
struct Along : DimSplit {
  using DimSplit::DimSplit;

  int64_t vectors() const { return outer * inner; }
  // Index of the vector that starts at an offset.
  int64_t number(int64_t offset) const { return offset / (n * inner) * inner + offset % (n * inner) % inner; }
  // Calls f(vectors, offset of the first one) for groups of vectors, on the pool.
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
