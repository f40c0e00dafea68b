// Matrices: the factorisations of one matrix, by LAPACK.
//
// Matrices are row-major and contiguous here; what is not said to be changed is only read. An object serves matrices
// of one size, one after the other, with memory that it gets once: a loop over a batch has one in each thread.
// Constructors throw std::bad_alloc, and Error (RuntimeError) where a size is beyond LAPACK's integers. Threads are
// LAPACK's own (lapack.h): whoever calls this holds a PoolLease, or is in a parallel loop.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/linear/lapack.h"

namespace tt::cpu {

template <typename T>
class Lu {
 public:
  Lu(int64_t m, int64_t n);
  // a (m x n) becomes L (its diagonal of ones not stored) and U; row i was exchanged with row
  // pivots[i] - 1, in order. The first zero on U's diagonal, counted from 1, or 0.
  int32_t factor(T* a, int32_t* pivots);

 private:
  int m_, n_;
  std::vector<T> columns_;
};

// The lower triangle of a (n x n) becomes L. The order of the first leading minor that is not positive, or 0.
template <typename T>
int32_t cholesky(T* a, int64_t n);

// b (n x k) becomes the solution of the triangle of a (n x n), or of its transpose (not its adjoint).
template <typename T>
void solve_triangular(const T* a, T* b, int64_t n, int64_t k, bool upper, bool transposed, bool unit);

template <typename T>
class Householder {
 public:
  // `q_columns`: how many columns of Q will be asked for, 0 to m.
  Householder(int64_t m, int64_t n, int64_t q_columns);
  // Takes a (m x n) apart. tau has the min(m, n) factors of the reflections 1 - tau v v^H, whose product is Q.
  void factor(const T* a, T* tau);
  // R's first rows.
  void triangle(int64_t rows, T* r) const;
  // R and, under it, the vectors v: m x n.
  void reflections(T* a) const;
  // Q's first columns (m x q_columns). Once, and last: they take the reflections' place.
  void orthogonal(const T* tau, T* q);

 private:
  int m_, n_, q_columns_;
  std::vector<T> columns_;
  lapack::Workspace<T> space_;
};

// Eigenvalues in rising order and, where asked for, eigenvectors as columns of Hermitian matrices.
template <typename T>
class Eigh {
 public:
  Eigh(int64_t n, bool upper, bool vectors);
  // Of what a's upper or lower triangle says. Not 0 where it is not finite, or does not converge.
  int32_t decompose(const T* a, real_of_t<T>* values, T* vectors);

 private:
  int n_;
  bool upper_;
  char job_;
  std::vector<T> columns_;
  lapack::Workspace<T> space_;
};

// Eigenvalues and, where asked for, eigenvectors as columns of length 1, of any matrix.
template <typename T>
class Eig {
 public:
  using C = Complex<real_of_t<T>>;
  Eig(int64_t n, bool vectors);
  // Not 0 where a is not finite, or does not converge.
  int32_t decompose(const T* a, C* values, C* vectors);

 private:
  int run(C* values);

  int n_;
  char job_;
  std::vector<T> columns_, vectors_;
  std::vector<real_of_t<T>> parts_;  // of the eigenvalues of a real matrix: the real ones, the imaginary ones
  lapack::Workspace<T> space_;
};

// u diag(s) vh = a (m x n). u and vh have k = min(m, n) columns and rows, or all, or are left alone.
enum class SingularVectors { kNone, kThin, kFull };
template <typename T>
class Svd {
 public:
  Svd(int64_t m, int64_t n, SingularVectors vectors);
  // Not 0 where a is not finite, or does not converge.
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
  void of(const T* a, T* out);  // NaN where a is not finite

 private:
  void half(int degree, int odd, std::vector<T>* sum);
  void approximate(int degree);

  int n_;
  std::vector<T> a_, powers_[3], even_, odd_, spare_;  // powers: a^2, a^4, a^6
  std::vector<int> pivots_;
};

}  // namespace tt::cpu
