// Jacobi's rotations, for eigenvalues and singular values: which of them may be done at once, and by what angle.
//
// A sweep turns every two columns towards each other once. Columns meet as players of a tournament do: in each of its
// rounds every column is in at most one pair, so that a group of threads turns all of them together.
#pragma once

#include "kernels/common/iteration/element.h"
#include "kernels/common/math/scalar_traits.h"
#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

inline constexpr int kMostSweeps = 60;  // ten or so are enough for what has an answer

// p < q; none where q is no column.
struct Meeting {
  int64_t p, q;
};

struct Tournament {
  int64_t columns;

  TT_FUNCTION int64_t pairs() const { return (columns + 1) / 2; }
  TT_FUNCTION int64_t rounds() const { return 2 * pairs() - 1; }
  // One player stays, the others go around a circle; with an odd number of columns nobody is the one that stays.
  TT_FUNCTION Meeting at(int64_t round, int64_t pair) const {
    const int64_t circle = rounds();
    const int64_t a = (round + pair) % circle, b = pair == 0 ? circle : (round - pair + circle) % circle;
    return a < b ? Meeting{a, b} : Meeting{b, a};
  }
  TT_FUNCTION bool is_pair(const Meeting& meeting) const { return meeting.q < columns; }
};

template <typename T>
struct Rotation {
  using R = real_of_t<T>;
  R cosine = 1;
  T sine = T(0);

  // U = [[cosine, sine], [-conj(sine), cosine]], with which those of U^H [[p, off], [conj(off), q]] U off the diagonal
  // are zero.
  TT_FUNCTION static Rotation diagonalising(R p, R q, T off) {
    if (off == T(0)) return {};
    if constexpr (is_complex_v<T>) {  // of a real matrix, after a turn of the second axis by off's angle
      const R scale = math::larger_part(off), length = math::abs(math::over(off, scale));
      const auto turn = Rotation<R>::diagonalising(p, q, scale * length);
      return {turn.cosine, math::times(math::over(math::over(off, scale), length), turn.sine)};
    } else {
      const T theta = (q - p) / (2 * off);
      const T tangent = (theta < 0 ? T(-1) : T(1)) / (math::abs(theta) + math::sqrt(theta * theta + 1));
      const T cosine = 1 / math::sqrt(tangent * tangent + 1);
      return {cosine, tangent * cosine};
    }
  }
  // Elements of two columns, which become those of the product with U.
  TT_FUNCTION void turn(T* x, T* y) const {
    const T old = *x;
    *x = math::times(old, cosine) - math::conj(sine) * *y;
    *y = sine * old + math::times(*y, cosine);
  }
  // What turns columns as U^H turns rows.
  TT_FUNCTION Rotation of_rows() const { return {cosine, math::conj(sine)}; }
};

// Where element i of n comes among them, each at a place of its own: rising or falling, of equals in their order, NaN
// last.
template <typename T>
TT_FUNCTION int64_t place_among(const T* x, int64_t n, int64_t i, bool falling) {
  const auto comes_first = [falling](T a, T b) { return is_nan(a) ? false : is_nan(b) || (falling ? a > b : a < b); };
  int64_t place = 0;
  for (int64_t j = 0; j < n; ++j) place += comes_first(x[j], x[i]) || (j < i && !comes_first(x[i], x[j]));
  return place;
}

}  // namespace tt::cuda
