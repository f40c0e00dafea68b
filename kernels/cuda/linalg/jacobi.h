// Jacobi rotations for eigenvalues and singular values: their angles, and the pairs of columns that can be rotated at
// the same time.
//
// A sweep rotates every pair of columns once. Pairs are scheduled like the matches of a round-robin tournament: in each
// round every column is in at most one pair, so a group of threads can apply all rotations of a round in parallel.
#pragma once

#include "kernels/common/iteration/element.h"
#include "kernels/common/math/scalar_traits.h"
#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

inline constexpr int kMaxSweeps = 60;  // about ten are enough for matrices that converge

// A pair of columns p < q. If q is not less than the number of columns, column p has no partner in the round.
struct ColumnPair {
  int64_t p, q;
};

struct RoundRobin {
  int64_t columns;

  TT_FUNCTION int64_t pairs() const { return (columns + 1) / 2; }
  TT_FUNCTION int64_t rounds() const { return 2 * pairs() - 1; }
  // Circle method: one player (column) stays fixed and the others rotate. With an odd number of columns, there is no
  // fixed player, and the column that would be paired with it is idle in that round.
  TT_FUNCTION ColumnPair at(int64_t round, int64_t pair) const {
    const int64_t circle = rounds();
    const int64_t a = (round + pair) % circle, b = pair == 0 ? circle : (round - pair + circle) % circle;
    return a < b ? ColumnPair{a, b} : ColumnPair{b, a};
  }
  TT_FUNCTION bool is_pair(const ColumnPair& pair) const { return pair.q < columns; }
};

template <typename T>
struct Rotation {
  using R = real_of_t<T>;
  R cosine = 1;
  T sine = T(0);

  // Returns the rotation U = [[cosine, sine], [-conj(sine), cosine]] for which U^H [[p, off], [conj(off), q]] U is
  // diagonal.
  TT_FUNCTION static Rotation diagonalising(R p, R q, T off) {
    if (off == T(0)) return {};
    if constexpr (is_complex_v<T>) {  // dividing by the phase of `off` reduces this to the real case
      const R scale = math::larger_part(off), length = math::abs(math::over(off, scale));
      const auto rotation = Rotation<R>::diagonalising(p, q, scale * length);
      return {rotation.cosine, math::times(math::over(math::over(off, scale), length), rotation.sine)};
    } else {
      const T theta = (q - p) / (2 * off);
      const T tangent = (theta < 0 ? T(-1) : T(1)) / (math::abs(theta) + math::sqrt(theta * theta + 1));
      const T cosine = 1 / math::sqrt(tangent * tangent + 1);
      return {cosine, tangent * cosine};
    }
  }
  // Multiplies two columns by U, given an element of each in the same row.
  TT_FUNCTION void apply(T* x, T* y) const {
    const T old = *x;
    *x = math::times(old, cosine) - math::conj(sine) * *y;
    *y = sine * old + math::times(*y, cosine);
  }
  // Returns the rotation whose apply() multiplies two rows by U^H.
  TT_FUNCTION Rotation of_rows() const { return {cosine, math::conj(sine)}; }
};

// Returns the position of element i among the n elements in sorted order, which is descending if `falling`. The order
// is stable, so positions are unique. NaN sorts last.
template <typename T>
TT_FUNCTION int64_t sorted_position(const T* x, int64_t n, int64_t i, bool falling) {
  const auto comes_first = [falling](T a, T b) { return is_nan(a) ? false : is_nan(b) || (falling ? a > b : a < b); };
  int64_t position = 0;
  for (int64_t j = 0; j < n; ++j) position += comes_first(x[j], x[i]) || (j < i && !comes_first(x[i], x[j]));
  return position;
}

}  // namespace tt::cuda
