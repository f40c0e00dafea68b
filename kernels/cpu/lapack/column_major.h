// Conversions between row-major matrices and LAPACK's column-major ones; size and finiteness checks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/schema/error.h"
#include "kernels/common/math/complex.h"
#include "kernels/cpu/iteration/transpose.h"

namespace tt::cpu {

// to[c * to_stride + r] = from[r * from_stride + c] for a matrix of rows x columns.
template <typename T>
void transpose_copy(const T* from, int64_t from_stride, int64_t rows, int64_t columns, T* to, int64_t to_stride) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  if constexpr (sizeof(T) == sizeof(Bits)) {
    constexpr int64_t kStrip = 16;  // whole cache lines
    for (int64_t c = 0; c < columns; c += kStrip) {
      transpose_plane(reinterpret_cast<const Bits*>(from + c), reinterpret_cast<Bits*>(to + c * to_stride),
                      {std::min(kStrip, columns - c), rows, from_stride, to_stride});
    }
  } else {
    constexpr int64_t kSquare = 16;  // tiles fit the L1 cache
    for (int64_t r = 0; r < rows; r += kSquare) {
      const int64_t r_end = std::min(rows, r + kSquare);
      for (int64_t c = 0; c < columns; c += kSquare) {
        const int64_t c_end = std::min(columns, c + kSquare);
        for (int64_t i = r; i < r_end; ++i) {
          for (int64_t j = c; j < c_end; ++j) to[j * to_stride + i] = from[i * from_stride + j];
        }
      }
    }
  }
}
// to[c][r] = from[r][c]
template <typename T>
void transpose_copy(const T* from, int64_t rows, int64_t columns, T* to) {
  transpose_copy(from, columns, rows, columns, to, rows);
}

// Throws Error (RuntimeError) if a size, or a workspace's number of elements, exceeds LAPACK's 32-bit integers.
inline void check_lapack_sizes(double elements) {
  check(elements <= std::numeric_limits<int>::max(),
        "matrix too large: LAPACK's 32-bit integers cannot represent its size or workspace size, got ", elements);
}
inline int to_lapack_int(int64_t size) {
  check_lapack_sizes(static_cast<double>(size));
  return static_cast<int>(size);
}

inline bool is_finite(float x) { return std::isfinite(x); }
inline bool is_finite(double x) { return std::isfinite(x); }
template <typename R>
bool is_finite(Complex<R> x) {
  return std::isfinite(x.re) && std::isfinite(x.im);
}
template <typename T>
bool all_finite(const T* elements, int64_t n) {
  return std::all_of(elements, elements + n, [](T x) { return is_finite(x); });
}

}  // namespace tt::cpu
