// balance: scales a matrix to a similar matrix in which row i and column i have about equal norms, for each i. This
// keeps eigenvalues accurate if the elements differ by orders of magnitude (Parlett and Reinsch 1969).
#pragma once

#include <limits>

#include "kernels/common/math/scalar_traits.h"
#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

// Replaces a (n x n) by D^-1 a D and stores D's diagonal in `scales`. The scales are powers of 2, so scaling does not
// round. All threads of the group must call this; the results are visible to all of them on return.
template <typename T>
TT_DEVICE void balance(Group& group, T* a, int64_t n, real_of_t<T>* scales) {
  using R = real_of_t<T>;
  struct Lengths {
    R column, row;
  };
  constexpr int kMaxRounds = 100;  // three or four are usual
  const R most = math::sqrt(std::numeric_limits<R>::max());
  for (int64_t i = group.rank(); i < n; i += group.size()) scales[i] = 1;
  group.sync();
  bool changed = true;
  for (int round = 0; changed && round < kMaxRounds; ++round) {
    changed = false;
    for (int64_t i = 0; i < n; ++i) {
      Lengths own{0, 0};
      for (int64_t j = group.rank(); j < n; j += group.size()) {
        if (j == i) continue;
        own.column += math::sum_of_parts(a[j * n + i]);
        own.row += math::sum_of_parts(a[i * n + j]);
      }
      own = group.reduce(own, [](Lengths x, Lengths y) { return Lengths{x.column + y.column, x.row + y.row}; });
      if (!(own.column > 0 && own.row > 0)) continue;
      R by = 1, column = own.column;
      for (; column < own.row / 2; column *= 4) by *= 2;
      for (; column >= own.row * 2; column /= 4) by /= 2;
      const R scale = scales[i] * by;
      group.sync();  // all threads have read the scale
      if ((column + own.row) / by >= R(0.95) * (own.column + own.row) || scale > most || scale < 1 / most) continue;
      changed = true;
      for (int64_t j = group.rank(); j < n; j += group.size()) {
        if (j == i) continue;
        a[j * n + i] = math::times(a[j * n + i], by);
        a[i * n + j] = math::over(a[i * n + j], by);
      }
      if (group.rank() == 0) scales[i] = scale;
      group.sync();
    }
  }
}

}  // namespace tt::cuda
