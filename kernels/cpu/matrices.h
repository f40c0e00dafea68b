// Matrices: the factorisations of one matrix, and the table of them for this machine.
//
// They are Eigen's, compiled once an instruction set. All matrices are row-major and contiguous;
// what is not said to be changed is only read. They run on the calling thread alone and may throw
// std::bad_alloc. Constant after start; any thread.
#pragma once

#include <cstdint>

#include "kernels/common/complex.h"

namespace tt::cpu {

template <typename T>
struct Matrices {
  using Real = real_of_t<T>;
  // a (m x n) becomes L (its diagonal of ones not stored) and U; row i was exchanged with row
  // pivots[i] - 1, in order. The first zero on U's diagonal, counted from 1, or 0.
  int32_t (*lu)(T* a, int64_t m, int64_t n, int32_t* pivots);
  // The lower triangle of a (n x n) becomes L. The order of the first leading minor that is not
  // positive, or 0.
  int32_t (*cholesky)(T* a, int64_t n);
  // b (n x k) becomes the solution of the triangle of a (n x n), or of its transpose (not its adjoint).
  void (*solve_triangular)(const T* a, T* b, int64_t n, int64_t k, bool upper, bool transposed, bool unit);
  // a (m x n) becomes R and, under it, the Householder vectors v; tau has the min(m, n) factors of
  // the reflections 1 - tau v v^H, whose product is Q.
  void (*householder)(T* a, int64_t m, int64_t n, T* tau);
  // The first k columns of Q (m x k), from `householder`'s m x n and tau.
  void (*orthogonal)(const T* a, const T* tau, int64_t m, int64_t n, int64_t k, T* q);
  // Eigenvalues in rising order and, unless null, eigenvectors as columns, of the Hermitian matrix
  // that a's lower triangle says. Not 0 where it did not converge.
  int32_t (*eigh)(const T* a, int64_t n, Real* values, T* vectors);
  // Eigenvalues and, unless null, eigenvectors as columns, of any matrix. Not 0 where it did not converge.
  int32_t (*eig)(const T* a, int64_t n, Complex<Real>* values, Complex<Real>* vectors);
  // a (m x n) = u diag(s) vh; u and vh are null, or have k = min(m, n) columns and rows, or (full)
  // m and n. Not 0 where it did not converge.
  int32_t (*svd)(const T* a, int64_t m, int64_t n, bool full, T* u, Real* s, T* vh);
  // out = exp(a), n x n.
  void (*exponential)(const T* a, int64_t n, T* out);
};

struct MatrixTable {
  Matrices<float> f32;
  Matrices<double> f64;
  Matrices<Complex<float>> c64;
  Matrices<Complex<double>> c128;

  const Matrices<float>& of(float) const { return f32; }
  const Matrices<double>& of(double) const { return f64; }
  const Matrices<Complex<float>>& of(Complex<float>) const { return c64; }
  const Matrices<Complex<double>>& of(Complex<double>) const { return c128; }
  template <typename T>
  const Matrices<T>& of() const {
    return of(T());
  }
};

#ifdef TT_ISA
namespace TT_ISA {
// Each file of kernels/cpu/isa fills its part of an instruction set's table.
void add_triangular(MatrixTable* table);
void add_orthogonal(MatrixTable* table);
void add_eigh(MatrixTable* table);
void add_eig(MatrixTable* table);
void add_svd(MatrixTable* table);
void add_exponential(MatrixTable* table);
}  // namespace TT_ISA
#endif

}  // namespace tt::cpu
