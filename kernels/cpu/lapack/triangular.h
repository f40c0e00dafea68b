// Triangular systems with many right-hand sides, in place and by halves: one half is solved, its product is subtracted
// from the other half, and so on, so that nearly all work is in products.
#pragma once

#include <cstdint>

namespace tt::cpu {

// The matrix of a system: the upper or lower triangle of a row-major matrix with `stride` elements per row, or its
// transpose (not adjoint). If `unit`, the diagonal is assumed to be 1.
template <typename T>
struct Triangle {
  const T* data;
  int64_t stride;
  bool upper, transposed, unit;
};

// Overwrites x (n x columns, row-major with `x_stride` elements per row) with the solution y of a y = x. Uses the
// caller's OpenMP threads. Throws Cancelled.
template <typename T>
void solve_in_place(const Triangle<T>& a, int64_t n, T* x, int64_t columns, int64_t x_stride);

}  // namespace tt::cpu
