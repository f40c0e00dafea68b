// Jacobi's rotations, for eigenvalues and singular values: which of them may be done at once, and by what angle.
//
// A sweep turns every two columns towards each other once. Columns meet as players of a tournament do: in each of its
// rounds every column is in at most one pair, so that a group of threads turns all of them together.
#pragma once

#include "kernels/common/scalar_math.h"
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
  T cosine = 1, sine = 0;

  // Makes the off-diagonal of [[p, off], [off, q]] zero.
  TT_FUNCTION static Rotation diagonalising(T p, T q, T off) {
    if (off == 0) return {};
    const T theta = (q - p) / (2 * off);
    const T tangent = (theta < 0 ? T(-1) : T(1)) / (math::abs(theta) + math::sqrt(theta * theta + 1));
    const T cosine = 1 / math::sqrt(tangent * tangent + 1);
    return {cosine, tangent * cosine};
  }
  TT_FUNCTION void turn(T* x, T* y) const {
    const T old = *x;
    *x = cosine * old - sine * *y;
    *y = sine * old + cosine * *y;
  }
};

// The largest magnitude of n elements; infinite where one is not finite. All threads of the group call it.
template <typename T>
TT_DEVICE T largest_magnitude(Group& group, const T* x, int64_t n) {
  T most = 0;
  for (int64_t e = group.rank(); e < n; e += group.size()) {
    const T size = math::isfinite(x[e]) ? math::abs(x[e]) : math::kInf<T>;
    most = size > most ? size : most;
  }
  return group.reduce(most, [](T a, T b) { return a > b ? a : b; });
}

// Where element i of n comes among them: rising or falling, and of equals in their order.
template <typename T>
TT_FUNCTION int64_t place_among(const T* x, int64_t n, int64_t i, bool falling) {
  int64_t place = 0;
  for (int64_t j = 0; j < n; ++j) place += (falling ? x[j] > x[i] : x[j] < x[i]) || (x[j] == x[i] && j < i);
  return place;
}

}  // namespace tt::cuda
