// Decompositions of a single matrix, implemented with LAPACK.
//
// Matrices are row-major and contiguous. Arguments are only read unless documented otherwise. An object processes
// matrices of one size, one after the other, and allocates its memory once; a loop over a batch creates one per
// thread. Constructors throw std::bad_alloc, and Error (RuntimeError) if a size exceeds LAPACK's integers. LAPACK
// uses its own threads (lapack.h): callers must hold a PoolLease or be inside a parallel loop. Factorisations that
// consist of blocks throw Cancelled.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/cpu/blas/routines.h"
#include "kernels/cpu/lapack/reflectors.h"
#include "kernels/cpu/lapack/tridiagonal.h"

namespace tt::cpu {

// Factors a symmetric matrix (Hermitian if `hermitian`) as L D L^T or L D L^H, as LAPACK's sytrf and hetrf do. One per
// thread.
template <typename T>
class Ldl {
 public:
  Ldl(int64_t n, bool hermitian);  // n is at least 1
  // Reads the lower triangle of `a` (n x n, row-major) and overwrites it with L and D; zeroes the upper triangle.
  // `pivots` receives n elements. Returns the index of the first zero block of D, counted from 1, or 0 if there is
  // none.
  int32_t factor(T* a, int32_t* pivots);
  // Overwrites `b` (n x k, row-major) with X, where A X = B. `ldl` and `pivots` are results of factor(), checked by
  // check_pivots().
  void solve(const T* ldl, const int32_t* pivots, T* b, int64_t k);
  // Throws Error (RuntimeError) unless `pivots` describes exchanges and blocks of an n x n matrix.
  static void check_pivots(const int32_t* pivots, int64_t n);

 private:
  int n_;
  bool hermitian_;
  std::vector<T> columns_, right_;  // column-major copies
  lapack::Workspace<T> space_;
};

template <typename T>
class Lu {
 public:
  Lu(int64_t m, int64_t n);  // m and n are at least 1
  // Overwrites `a` (m x n) with L (whose unit diagonal is not stored) and U. `pivots` receives min(m, n) elements: row
  // i was exchanged with row pivots[i] - 1, in order. Returns the index of the first zero on U's diagonal, counted from
  // 1, or 0 if there is none.
  int32_t factor(T* a, int32_t* pivots);

 private:
  int m_, n_;
  std::vector<T> panel_;  // columns that are being factored, one after the other
};

// Overwrites the lower triangle of a (n x n) with L. Returns the order of the first leading minor that is not positive,
// or 0 if all are.
template <typename T>
int32_t cholesky(T* a, int64_t n);

// Overwrites `b` (n x k) with the solution of a triangular system. The matrix of the system is the upper or lower
// triangle of `a` (n x n) or, if `transposed`, the transpose (not the adjoint) of this triangle. If `unit`, its
// diagonal is assumed to be 1.
template <typename T>
void solve_triangular(const T* a, T* b, int64_t n, int64_t k, bool upper, bool transposed, bool unit);

template <typename T>
class Householder {
 public:
  // Whether an m x n matrix is factored in blocks. LAPACK's routines are faster for few reflections; they synchronise
  // their threads at every column.
  static bool is_blocked(int64_t m, int64_t n) { return std::min(m, n) > 64; }
  // `q_columns` is the number of columns of Q that orthogonal() will compute, 0 to m.
  Householder(int64_t m, int64_t n, int64_t q_columns);
  // Factors `a` (m x n). `tau` receives the min(m, n) factors of the reflections 1 - tau v v^H, whose product is Q.
  void factor(const T* a, T* tau);
  // Copies the first `rows` rows of R to `r` (rows x n).
  void triangle(int64_t rows, T* r) const;
  // Copies R and, below R's diagonal, the vectors v to `a` (m x n).
  void reflections(T* a) const;
  // Computes Q's first columns (m x q_columns). Overwrites the reflections, so it must be the last call for a matrix.
  void orthogonal(const T* tau, T* q);

 private:
  int m_, n_, q_columns_;
  std::vector<T> columns_;
  Reflectors<T> reflectors_;
  lapack::Workspace<T> space_;
};

// Eigenvalues in ascending order and, optionally, eigenvectors (as columns) of Hermitian matrices.
template <typename T>
class Eigh {
 public:
  using R = real_of_t<T>;
  Eigh(int64_t n, bool upper, bool vectors);
  // `a` is n x n; only its upper or lower triangle is read. `values` has n elements. `vectors` is n x n, and unused if
  // not requested. Returns nonzero if the triangle is not finite or the iteration does not converge.
  int32_t decompose(const T* a, R* values, T* vectors);

 private:
  // Whether LAPACK's driver computes everything. Otherwise its parts are called, and Tridiagonal and Reflectors replace
  // the slow ones.
  bool uses_driver() const;
  char job() const { return vectors_ ? 'V' : 'N'; }
  R scale();
  T* converted_vectors();

  int n_;
  bool upper_, vectors_;
  std::vector<T> columns_, tau_, converted_;
  std::vector<R> beside_, vectors_of_tridiagonal_;  // the tridiagonal matrix: elements beside the diagonal
  Reflectors<T> reflectors_;
  std::optional<Tridiagonal<R>> tridiagonal_;
  lapack::Workspace<T> space_;
};

// Eigenvalues and, optionally, normalised eigenvectors (as columns) of general matrices.
template <typename T>
class Eig {
 public:
  using C = Complex<real_of_t<T>>;
  Eig(int64_t n, bool vectors);
  // `a` is n x n. `values` has n elements. `vectors` is n x n, and unused if not requested. Returns nonzero if `a` is
  // not finite or the iteration does not converge.
  int32_t decompose(const T* a, C* values, C* vectors);

 private:
  int run(C* values);

  int n_;
  char job_;
  std::vector<T> columns_, vectors_;
  std::vector<real_of_t<T>> parts_;  // for real matrices: the eigenvalues' real parts, then the imaginary parts
  lapack::Workspace<T> space_;
};

// Size of `u` and `vh` in u diag(s) vh = a, where `a` is m x n. kNone: neither is computed. kThin: `u` has min(m, n)
// columns, `vh` has min(m, n) rows. kFull: `u` is m x m, `vh` is n x n.
enum class SingularVectors { kNone, kThin, kFull };
template <typename T>
class Svd {
 public:
  Svd(int64_t m, int64_t n, SingularVectors vectors);
  // `a` is m x n. Stores min(m, n) singular values in `s`, in descending order. `u` and `vh` have the sizes that
  // SingularVectors documents, and are unused for kNone. Returns nonzero if `a` is not finite or the iteration does not
  // converge.
  int32_t decompose(const T* a, T* u, real_of_t<T>* s, T* vh);

 private:
  int run(real_of_t<T>* s);

  int m_, n_, u_columns_ = 1, vh_rows_ = 1;
  char job_ = 'N';
  std::vector<T> columns_, u_, vh_;
  lapack::Workspace<T> space_;
};

// exp(a), by Padé approximants with scaling and squaring (Higham 2005).
template <typename T>
class Exponential {
 public:
  explicit Exponential(int64_t n);
  void of(const T* a, T* out);  // out = exp(a), both n x n; NaN if `a` is not finite

 private:
  void half(int degree, int odd, std::vector<T>* sum);
  void approximate(int degree);

  int n_;
  std::vector<T> a_, powers_[3], even_, odd_, spare_;  // powers: a^2, a^4, a^6
  std::vector<int> pivots_;
};

}  // namespace tt::cpu
