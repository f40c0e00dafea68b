// Reflectors: products of Householder reflections H_i = 1 - tau_i v_i v_i^H, applied in blocks.
//
// A block H_0 ... H_(b-1) is 1 - V T V^H, where T^-1 is the upper triangle of V^H V with 1 / tau_i on the diagonal
// (Joffrain, Low, Quintana-Orti, van de Geijn, van Zee 2006: "Accumulating Householder transformations, revisited"), so
// that a block costs four products. LAPACK's own routines apply it with products of triangles, which OpenBLAS computes
// at a third of the speed.
//
// Matrices are column-major. The vectors v_i are stored as LAPACK stores them: below the diagonal of column i, whose
// diagonal element, 1, is not stored. An object belongs to one thread at a time, and keeps its workspace. Products use
// the caller's OpenMP threads. Throws std::bad_alloc and Cancelled.
#pragma once

#include <vector>

namespace tt::cpu {

template <typename T>
class Reflectors {
 public:
  // Factors a (m x n) into Q R: R replaces the upper triangle, the min(m, n) reflections of Q its other elements.
  void factor(int m, int n, T* a, int lda, T* tau);
  // c = H_0 ... H_(k-1) c, where c is m x n and m >= k.
  void apply(int m, int n, int k, const T* v, int ldv, const T* tau, T* c, int ldc);
  // Replaces the first k columns of a, which hold reflections, by columns of H_0 ... H_(k-1); `a` is m x columns, and
  // k <= columns <= m.
  void form(int m, int columns, int k, T* a, int lda, const T* tau);

 private:
  // Copies a block of `count` reflections of `rows` elements, with its zeros and ones, and computes T.
  void load(int rows, int count, const T* v, int ldv, const T* tau);
  // c = (1 - V T V^H) c, or with T^H if `adjoint`, for the loaded block.
  void reflect(bool adjoint, int columns, T* c, int ldc);
  void reflect_columns(bool adjoint, int columns, T* c, int ldc);

  int rows_ = 0, count_ = 0;
  std::vector<T> v_, inverse_t_, t_, products_;
};

}  // namespace tt::cpu
