// Schur: factors a square matrix into Z H Z^H, where H is upper triangular except for 2x2 blocks on its diagonal. One
// group of threads factors one row-major matrix.
//
// Uses Francis's double-shift QR iteration (Golub and Van Loan, "Matrix Computations", 7.5). The two shifts are
// represented by their sum and product, which are real for a real matrix, so the same steps work for real and complex
// matrices. 2x2 blocks are not reduced further: only their subdiagonal elements are not 0 below the diagonal.
//
// All threads of the group must call these functions with the same arguments; the results are visible to all of them on
// return.
#pragma once

#include "kernels/cuda/linalg/reflections.h"

namespace tt::cuda {

template <typename T>
struct Schur {
  using R = real_of_t<T>;
  int64_t n;
  T *h, *z, *tau;  // `h` and `z` are n x n; `z` is null if not requested. `tau` has n elements.

  // Overwrites h with H. Requires that real and imaginary parts are at most 1. Returns false if the iteration does not
  // converge.
  TT_DEVICE bool decompose(Group& group) const {
    make_hessenberg(group);
    constexpr int kMaxSteps = 90;  // per block; three are usual
    int64_t end = n;
    for (int step = 0; end > 0;) {
      const int64_t begin = split(group, end);
      if (begin + 2 >= end) {
        end = begin;
        step = 0;
      } else if (++step > kMaxSteps) {
        return false;
      } else {
        sweep(group, begin, end, step % 10 == 0 ? exceptional_shifts(end) : shifts(end));
      }
    }
    return true;
  }

 private:
  struct Shifts {
    T sum, product;
  };
  // A reflection of two or three adjacent elements of a row or a column.
  struct SmallReflection {
    int count;
    T v[2], factor;  // v: the vector after its leading 1

    TT_DEVICE void apply(T* x, int64_t step, T by, bool from_the_right) const {
      T along = x[0];
      for (int i = 1; i < count; ++i) along += x[i * step] * (from_the_right ? v[i - 1] : math::conj(v[i - 1]));
      along *= by;
      x[0] -= along;
      for (int i = 1; i < count; ++i) x[i * step] -= along * (from_the_right ? math::conj(v[i - 1]) : v[i - 1]);
    }
    TT_DEVICE void column(T* x, int64_t step) const { apply(x, step, math::conj(factor), false); }
    TT_DEVICE void row(T* x) const { apply(x, 1, factor, true); }
  };

  // Zeroes the elements below the first subdiagonal by reflections of rows 1 and later.
  TT_DEVICE void make_hessenberg(Group& group) const {
    T* const below = h + n;
    for (int64_t j = 0; j + 1 < n; ++j) {
      const T factor = make_reflection(group, below, n - 1, n, j);
      if (group.rank() == 0) tau[j] = factor;
      for (int64_t c = j + 1 + group.rank(); c < n; c += group.size()) {
        reflect(below, n - 1, n, j, math::conj(factor), below, n, c);
      }
      group.sync();
      for (int64_t r = group.rank(); r < n; r += group.size()) reflect_row(below, n - 1, n, j, factor, h + r * n + 1);
      group.sync();
    }
    if (z) {
      for (int64_t i = group.rank(); i < n; i += group.size()) z[i] = z[i * n] = i == 0 ? T(1) : T(0);
      expand_q(group, below, n - 1, n, tau, z + n + 1, n - 1, n);
    }
    for (int64_t e = group.rank(); e < n * n; e += group.size()) {
      if (e % n + 1 < e / n) h[e] = T(0);
    }
    group.sync();
  }

  TT_DEVICE T at(int64_t row, int64_t column) const { return h[row * n + column]; }
  TT_DEVICE R size_of(int64_t row, int64_t column) const { return math::sum_of_parts(at(row, column)); }

  // Returns the first row of the block that ends before row `end`. The subdiagonal element between that block and the
  // one above is negligible; sets the element to 0.
  TT_DEVICE int64_t split(Group& group, int64_t end) const {
    constexpr R kEpsilon = std::numeric_limits<R>::epsilon();
    int64_t begin = end - 1;
    for (; begin > 0; --begin) {
      const R around = size_of(begin - 1, begin - 1) + size_of(begin, begin);
      if (size_of(begin, begin - 1) <= kEpsilon * (around > 0 ? around : R(1))) break;
    }
    group.sync();  // all threads have read the element
    if (group.rank() == 0 && begin > 0) h[begin * n + begin - 1] = T(0);
    group.sync();
    return begin;
  }
  // Returns the sum and product of the eigenvalues of the last two rows and columns before `end`.
  TT_DEVICE Shifts shifts(int64_t end) const {
    const T a = at(end - 2, end - 2), b = at(end - 2, end - 1), c = at(end - 1, end - 2), d = at(end - 1, end - 1);
    return {a + d, a * d - b * c};
  }
  // Exceptional shifts (LAPACK's), for iterations that cycle.
  TT_DEVICE Shifts exceptional_shifts(int64_t end) const {
    const R size = size_of(end - 1, end - 2) + size_of(end - 2, end - 3);
    const T middle = at(end - 1, end - 1) + T(R(0.75) * size);
    return {middle + middle, middle * middle + T(R(0.4375) * size * size)};
  }

  // Returns the reflection that maps x to (end, 0, 0).
  TT_DEVICE static SmallReflection reflection_to_first(int count, const T (&x)[3], T* end) {
    R scale = 0;
    for (int i = 0; i < count; ++i) scale = math::fmax(scale, math::larger_part(x[i]));
    scale = scale > 0 ? scale : R(1);
    R tail = 0;
    for (int i = 1; i < count; ++i) tail += math::squared_length(math::over(x[i], scale));
    const Reflection<T> reflection(x[0], scale, tail);
    *end = T(reflection.end);
    return {count, {reflection.other(x[1], x[0]), reflection.other(x[2], x[0])}, reflection.factor};
  }

  // One step of the iteration: the shifts create a bulge below the diagonal of the block [begin, end), which has at
  // least three rows, and reflections chase the bulge down.
  TT_DEVICE void sweep(Group& group, int64_t begin, int64_t end, const Shifts& shifts) const {
    const int64_t top = z ? 0 : begin, right = z ? n : end;  // without vectors, the other elements of H are not needed
    const T first = at(begin, begin), below = at(begin + 1, begin);
    // The first column of H^2 - sum H + product I.
    T x[3] = {first * (first - shifts.sum) + at(begin, begin + 1) * below + shifts.product,
              below * (first + at(begin + 1, begin + 1) - shifts.sum), below * at(begin + 2, begin + 1)};
    for (int64_t k = begin; k + 1 < end; ++k) {
      const int count = k + 2 < end ? 3 : 2;
      for (int i = 0; i < 3 && k > begin; ++i) x[i] = i < count ? at(k + i, k - 1) : T(0);
      T last;
      const SmallReflection reflection = reflection_to_first(count, x, &last);
      group.sync();  // all threads have read x
      for (int64_t c = k + group.rank(); c < right; c += group.size()) reflection.column(h + k * n + c, n);
      if (group.rank() == 0 && k > begin) {
        for (int i = 0; i < count; ++i) h[(k + i) * n + k - 1] = i == 0 ? last : T(0);
      }
      group.sync();
      const int64_t bottom = k + 4 < end ? k + 4 : end;
      for (int64_t r = top + group.rank(); r < bottom; r += group.size()) reflection.row(h + r * n + k);
      for (int64_t r = group.rank(); r < n && z; r += group.size()) reflection.row(z + r * n + k);
      group.sync();
    }
  }
};

}  // namespace tt::cuda
