// Householder reflections of one row-major matrix by a group of threads.
//
// All threads of the group must call these functions with the same arguments; the results are visible to all of them on
// return.
#pragma once

#include <limits>

#include "kernels/common/math/scalar_traits.h"
#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

// The reflection I - factor v v^H, whose adjoint maps a vector (head, x...) to (end, 0, ...). v is 1 followed by the
// elements x / (head - end). The adjoint is the reflection with the conjugate of `factor`.
template <typename T>
struct Reflection {
  using R = real_of_t<T>;
  R end;
  T factor;
  bool is_identity;  // the elements x are negligible, so the reflection is the identity

  // `tail` is the sum of |x / scale|^2 over the elements x. `scale` must be at least the magnitude of the real and
  // imaginary part of each element.
  TT_DEVICE Reflection(T head, R scale, R tail) {
    is_identity = tail <= std::numeric_limits<R>::min() && math::imag(head) == 0;
    const R along = math::real(head), length = scale * math::sqrt(math::squared_length(math::over(head, scale)) + tail);
    end = is_identity ? along : along >= 0 ? -length : length;
    factor = is_identity ? T(0) : math::over(T(end) - head, end);
  }
  // Returns the element of v for an element x.
  TT_DEVICE T other(T x, T head) const { return is_identity ? T(0) : x / (head - T(end)); }
};

// Computes the reflection that zeroes column j of a (m x n) below the diagonal, and applies it to that column. Stores
// the reflection's vector in place of the zeros, without its leading 1. Returns the reflection's factor.
template <typename T>
TT_DEVICE T make_reflection(Group& group, T* a, int64_t m, int64_t n, int64_t j) {
  using R = real_of_t<T>;
  R most = 0;  // squares of values divided by this scale are at most about 1
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
  group.sync();  // all threads have read the head
  for (int64_t i = j + 1 + group.rank(); i < m; i += group.size()) a[i * n + j] = reflection.other(a[i * n + j], head);
  if (group.rank() == 0) a[j * n + j] = T(reflection.end);
  group.sync();
  return reflection.factor;
}

// Applies a reflection to one column of x (m rows, `width` columns). The reflection's vector is 1 in row j, followed by
// the elements of column j of a (m x n) below the diagonal.
template <typename T>
TT_DEVICE void reflect(const T* a, int64_t m, int64_t n, int64_t j, T factor, T* x, int64_t width, int64_t column) {
  T along = x[j * width + column];
  for (int64_t i = j + 1; i < m; ++i) along += math::conj(a[i * n + j]) * x[i * width + column];
  along *= factor;
  x[j * width + column] -= along;
  for (int64_t i = j + 1; i < m; ++i) x[i * width + column] -= a[i * n + j] * along;
}
// Applies the reflection from the right, to a row of m elements.
template <typename T>
TT_DEVICE void reflect_row(const T* a, int64_t m, int64_t n, int64_t j, T factor, T* row) {
  T along = row[j];
  for (int64_t i = j + 1; i < m; ++i) along += row[i] * a[i * n + j];
  along *= factor;
  row[j] -= along;
  for (int64_t i = j + 1; i < m; ++i) row[i] -= along * math::conj(a[i * n + j]);
}

// Overwrites a (m x n) with R, whose diagonal is real, and the vectors of the reflections below the diagonal. Stores
// the min(m, n) factors of the reflections in `tau`.
template <typename T>
TT_DEVICE void factor_qr(Group& group, T* a, int64_t m, int64_t n, T* tau) {
  for (int64_t j = 0; j < m && j < n; ++j) {
    const T factor = make_reflection(group, a, m, n, j);
    if (group.rank() == 0) tau[j] = factor;
    for (int64_t c = j + 1 + group.rank(); c < n; c += group.size()) reflect(a, m, n, j, math::conj(factor), a, n, c);
    group.sync();
  }
}

// Computes the first `columns` columns of Q (m rows, `width` columns) from the result of factor_qr().
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
