// Reflections: Householder's, of one row-major matrix by a group of threads.
//
// All threads of the group call these, with the same arguments; what they wrote is there for all afterwards.
#pragma once

#include <limits>

#include "kernels/common/field.h"
#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

// A reflection is 1 - factor v v^H; its adjoint, which of complex numbers is another one, has the conjugate of the factor.

// Reflects a column of x (m rows, `width` wide) by the vector that is 1 in row j and, below, column j of a (m x n).
template <typename T>
TT_DEVICE void reflect(const T* a, int64_t m, int64_t n, int64_t j, T factor, T* x, int64_t width, int64_t column) {
  T along = x[j * width + column];
  for (int64_t i = j + 1; i < m; ++i) along += math::conj(a[i * n + j]) * x[i * width + column];
  along *= factor;
  x[j * width + column] -= along;
  for (int64_t i = j + 1; i < m; ++i) x[i * width + column] -= a[i * n + j] * along;
}

// a (m x n) becomes R, its diagonal real, and, under it, the reflections' vectors; tau gets their min(m, n) factors.
template <typename T>
TT_DEVICE void factor_qr(Group& group, T* a, int64_t m, int64_t n, T* tau) {
  using R = real_of_t<T>;
  for (int64_t j = 0; j < m && j < n; ++j) {
    R most = 0;  // what is squared is at most 1
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
    const bool flat = tail <= std::numeric_limits<R>::min() && math::imag(head) == 0;
    const R along = math::real(head), length = scale * math::sqrt(math::squared_length(math::over(head, scale)) + tail);
    const R end = flat ? along : along >= 0 ? -length : length;
    const T factor = flat ? T(0) : math::over(T(end) - head, end);
    group.sync();  // all have read the head
    for (int64_t i = j + 1 + group.rank(); i < m; i += group.size()) {
      a[i * n + j] = flat ? T(0) : a[i * n + j] / (head - T(end));
    }
    if (group.rank() == 0) {
      a[j * n + j] = T(end);
      tau[j] = factor;
    }
    group.sync();
    for (int64_t c = j + 1 + group.rank(); c < n; c += group.size()) reflect(a, m, n, j, math::conj(factor), a, n, c);
    group.sync();
  }
}

// The first `columns` columns of Q (m rows), from what factor_qr() left.
template <typename T>
TT_DEVICE void expand_q(Group& group, const T* a, int64_t m, int64_t n, const T* tau, T* q, int64_t columns) {
  for (int64_t c = group.rank(); c < columns; c += group.size()) {
    for (int64_t i = 0; i < m; ++i) q[i * columns + c] = i == c ? T(1) : T(0);
    for (int64_t j = (m < n ? m : n) - 1; j >= 0; --j) reflect(a, m, n, j, tau[j], q, columns, c);
  }
  group.sync();
}

}  // namespace tt::cuda
