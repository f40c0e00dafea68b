// Reflections: Householder's, of one row-major matrix by a group of threads.
//
// All threads of the group call these, with the same arguments; what they wrote is there for all afterwards.
#pragma once

#include <limits>

#include "kernels/common/math/scalar_traits.h"
#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

// A reflection: 1 - factor v v^H. Its adjoint, of complex numbers another one, has the conjugate of the factor. This is
// the one whose adjoint takes a vector to (end, 0, ...): v is 1 and then the vector's others over (head - end).
template <typename T>
struct Reflection {
  using R = real_of_t<T>;
  R end;
  T factor;
  bool flat;  // there are no others to speak of, and nothing is reflected

  // `tail`: the sum of the others' squares, each over `scale`, which none of their parts exceeds.
  TT_DEVICE Reflection(T head, R scale, R tail) {
    flat = tail <= std::numeric_limits<R>::min() && math::imag(head) == 0;
    const R along = math::real(head), length = scale * math::sqrt(math::squared_length(math::over(head, scale)) + tail);
    end = flat ? along : along >= 0 ? -length : length;
    factor = flat ? T(0) : math::over(T(end) - head, end);
  }
  TT_DEVICE T other(T x, T head) const { return flat ? T(0) : x / (head - T(end)); }
};

// Reflects column j of a (m x n) from row j on: what is below becomes the vector. Returns the factor.
template <typename T>
TT_DEVICE T take_reflection(Group& group, T* a, int64_t m, int64_t n, int64_t j) {
  using R = real_of_t<T>;
  R most = 0;  // what is squared is about 1 at most
  for (int64_t i = j + group.rank(); i < m; i += group.size()) {
    const R size = math::larger_part(a[i * n + j]);
    most = size > most ? size : most;
  }
  most = group.reduce(most, [](R x, R y) { return x > y ? x : y; });
  const R scale = most > 0 ? most : R(1);
  const T head = a[j * n + j];
  R tail = 0;
  for (int64_t i = j + 1 + group.rank(); i < m; i += group.size()) {
    tail += math::squared_length(math::over(a[i * n + j], scale));
  }
  tail = group.reduce(tail, Add());
  const Reflection<T> reflection(head, scale, tail);
  group.sync();  // all have read the head
  for (int64_t i = j + 1 + group.rank(); i < m; i += group.size()) a[i * n + j] = reflection.other(a[i * n + j], head);
  if (group.rank() == 0) a[j * n + j] = T(reflection.end);
  group.sync();
  return reflection.factor;
}

// Reflects a column of x (m rows, `width` wide) by the vector that is 1 in row j and, below, column j of a (m x n).
template <typename T>
TT_DEVICE void reflect(const T* a, int64_t m, int64_t n, int64_t j, T factor, T* x, int64_t width, int64_t column) {
  T along = x[j * width + column];
  for (int64_t i = j + 1; i < m; ++i) along += math::conj(a[i * n + j]) * x[i * width + column];
  along *= factor;
  x[j * width + column] -= along;
  for (int64_t i = j + 1; i < m; ++i) x[i * width + column] -= a[i * n + j] * along;
}
// The same from the right: a row of m elements.
template <typename T>
TT_DEVICE void reflect_row(const T* a, int64_t m, int64_t n, int64_t j, T factor, T* row) {
  T along = row[j];
  for (int64_t i = j + 1; i < m; ++i) along += row[i] * a[i * n + j];
  along *= factor;
  row[j] -= along;
  for (int64_t i = j + 1; i < m; ++i) row[i] -= along * math::conj(a[i * n + j]);
}

// a (m x n) becomes R, its diagonal real, and, under it, the reflections' vectors; tau gets their min(m, n) factors.
template <typename T>
TT_DEVICE void factor_qr(Group& group, T* a, int64_t m, int64_t n, T* tau) {
  for (int64_t j = 0; j < m && j < n; ++j) {
    const T factor = take_reflection(group, a, m, n, j);
    if (group.rank() == 0) tau[j] = factor;
    for (int64_t c = j + 1 + group.rank(); c < n; c += group.size()) reflect(a, m, n, j, math::conj(factor), a, n, c);
    group.sync();
  }
}

// The first `columns` columns of Q (m rows, `width` wide), from what factor_qr() left.
template <typename T>
TT_DEVICE void expand_q(Group& group, const T* a, int64_t m, int64_t n, const T* tau, T* q, int64_t columns,
                        int64_t width) {
  for (int64_t c = group.rank(); c < columns; c += group.size()) {
    for (int64_t i = 0; i < m; ++i) q[i * width + c] = i == c ? T(1) : T(0);
    for (int64_t j = (m < n ? m : n) - 1; j >= 0; --j) reflect(a, m, n, j, tau[j], q, width, c);
  }
  group.sync();
}

}  // namespace tt::cuda
