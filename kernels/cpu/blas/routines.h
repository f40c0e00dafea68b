// BLAS and LAPACK routines that matrices.h uses, overloaded for the four element types.
//
// Conventions are LAPACK's: matrices are column-major with `ld` elements per column, and all integers have 32 bits.
// Routines return `info`: 0, or a value that each routine documents; -i if argument i is invalid, which is then also
// printed. Any thread may call them; OpenBLAS uses the threads that OpenMP would give the caller
// (engine/device/parallel.h), and a single one inside a parallel loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/common/math/complex.h"

namespace tt::cpu::lapack {

// The number of elements to allocate for a matrix. OpenBLAS 0.3.21's complex gemv reads one element past the end of a
// vector (its issue 4013), which for a row of a matrix is an element of the column after the last one.
inline size_t padded_elements(int64_t rows, int64_t columns) { return static_cast<size_t>(rows * (columns + 1)); }

// A routine's workspace. A first call with `size_query` set only reports the required sizes; allocate() then allocates
// them.
template <typename T>
struct Workspace {
  using Real = real_of_t<T>;
  std::vector<T> work = std::vector<T>(1);
  std::vector<Real> reals = std::vector<Real>(1);
  std::vector<int> integers = std::vector<int>(1);
  bool size_query = true;

  void allocate();
  int work_size() const { return size_query ? -1 : static_cast<int>(work.size()); }
  int reals_size() const { return size_query ? -1 : static_cast<int>(reals.size()); }
  int integers_size() const { return size_query ? -1 : static_cast<int>(integers.size()); }
};

// The routines that all four types share. Fortran passes the lengths of string arguments after all other arguments.
#define TT_LAPACK(T, p, orgqr_of_type)                                                                                 \
  extern "C" {                                                                                                         \
  void p##getrf_(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info);                            \
  void p##potrf_(const char* uplo, const int* n, T* a, const int* lda, int* info, size_t);                             \
  void p##geqrf_(const int* m, const int* n, T* a, const int* lda, T* tau, T* work, const int* lwork, int* info);      \
  void p##geqrt3_(const int* m, const int* n, T* a, const int* lda, T* t, const int* ldt, int* info);                  \
  void orgqr_of_type(const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau, T* work,            \
                     const int* lwork, int* info);                                                                     \
  void p##getrs_(const char* trans, const int* n, const int* k, const T* a, const int* lda, const int* pivots, T* b,   \
                 const int* ldb, int* info, size_t);                                                                   \
  void p##sytrf_(const char* uplo, const int* n, T* a, const int* lda, int* pivots, T* work, const int* lwork,         \
                 int* info, size_t);                                                                                   \
  void p##sytrs_(const char* uplo, const int* n, const int* k, const T* a, const int* lda, const int* pivots, T* b,    \
                 const int* ldb, int* info, size_t);                                                                   \
  void p##trsv_(const char* uplo, const char* trans, const char* diag, const int* n, const T* a, const int* lda, T* x, \
                const int* step, size_t, size_t, size_t);                                                              \
  void p##gemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k, const T* alpha,      \
                const T* a, const int* lda, const T* b, const int* ldb, const T* beta, T* c, const int* ldc, size_t,   \
                size_t);                                                                                               \
  }                                                                                                                    \
  inline int getrf(int m, int n, T* a, int lda, int* pivots) {                                                         \
    int info = 0;                                                                                                      \
    p##getrf_(&m, &n, a, &lda, pivots, &info);                                                                         \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int getrs(char trans, int n, int k, const T* a, int lda, const int* pivots, T* b, int ldb) {                  \
    int info = 0;                                                                                                      \
    p##getrs_(&trans, &n, &k, a, &lda, pivots, b, &ldb, &info, 1);                                                     \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int sytrf(char uplo, int n, T* a, int lda, int* pivots, Workspace<T>& space) {                                \
    int info = 0;                                                                                                      \
    const int size = space.work_size();                                                                                \
    p##sytrf_(&uplo, &n, a, &lda, pivots, space.work.data(), &size, &info, 1);                                         \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int sytrs(char uplo, int n, int k, const T* a, int lda, const int* pivots, T* b, int ldb) {                   \
    int info = 0;                                                                                                      \
    p##sytrs_(&uplo, &n, &k, a, &lda, pivots, b, &ldb, &info, 1);                                                      \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int potrf(char uplo, int n, T* a, int lda) {                                                                  \
    int info = 0;                                                                                                      \
    p##potrf_(&uplo, &n, a, &lda, &info, 1);                                                                           \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int geqrf(int m, int n, T* a, int lda, T* tau, Workspace<T>& space) {                                         \
    int info = 0;                                                                                                      \
    const int size = space.work_size();                                                                                \
    p##geqrf_(&m, &n, a, &lda, tau, space.work.data(), &size, &info);                                                  \
    return info;                                                                                                       \
  }                                                                                                                    \
  /* The diagonal of `t` (n x n) receives the factors tau. */                                                          \
  inline int geqrt3(int m, int n, T* a, int lda, T* t) {                                                               \
    int info = 0;                                                                                                      \
    p##geqrt3_(&m, &n, a, &lda, t, &n, &info);                                                                         \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int orgqr(int m, int n, int k, T* a, int lda, const T* tau, Workspace<T>& space) {                            \
    int info = 0;                                                                                                      \
    const int size = space.work_size();                                                                                \
    orgqr_of_type(&m, &n, &k, a, &lda, tau, space.work.data(), &size, &info);                                          \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline void trsv(char uplo, char trans, char diag, int n, const T* a, int lda, T* x) {                               \
    const int step = 1;                                                                                                \
    p##trsv_(&uplo, &trans, &diag, &n, a, &lda, x, &step, 1, 1, 1);                                                    \
  }                                                                                                                    \
  /* c = alpha op(a) op(b) + beta c, where c is m x n */                                                               \
  inline void gemm(char trans_a, char trans_b, int m, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb, \
                   T beta, T* c, int ldc) {                                                                            \
    p##gemm_(&trans_a, &trans_b, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc, 1, 1);                          \
  }                                                                                                                    \
  /* c = op(a) op(b), where c is m x n */                                                                              \
  inline void gemm(char trans_a, char trans_b, int m, int n, int k, const T* a, int lda, const T* b, int ldb, T* c,    \
                   int ldc) {                                                                                          \
    gemm(trans_a, trans_b, m, n, k, T(1), a, lda, b, ldb, T(0), c, ldc);                                               \
  }                                                                                                                    \
  /* c = a b, all n x n */                                                                                             \
  inline void gemm(int n, const T* a, const T* b, T* c) { gemm('N', 'N', n, n, n, a, n, b, n, c, n); }

TT_LAPACK(float, s, sorgqr_)
TT_LAPACK(double, d, dorgqr_)
TT_LAPACK(Complex<float>, c, cungqr_)
TT_LAPACK(Complex<double>, z, zungqr_)
#undef TT_LAPACK

// Hermitian matrices; of real ones, sytrf and sytrs.
#define TT_LAPACK(T, p)                                                                                             \
  extern "C" {                                                                                                      \
  void p##hetrf_(const char* uplo, const int* n, T* a, const int* lda, int* pivots, T* work, const int* lwork,      \
                 int* info, size_t);                                                                                \
  void p##hetrs_(const char* uplo, const int* n, const int* k, const T* a, const int* lda, const int* pivots, T* b, \
                 const int* ldb, int* info, size_t);                                                                \
  }                                                                                                                 \
  inline int hetrf(char uplo, int n, T* a, int lda, int* pivots, Workspace<T>& space) {                             \
    int info = 0;                                                                                                   \
    const int size = space.work_size();                                                                             \
    p##hetrf_(&uplo, &n, a, &lda, pivots, space.work.data(), &size, &info, 1);                                      \
    return info;                                                                                                    \
  }                                                                                                                 \
  inline int hetrs(char uplo, int n, int k, const T* a, int lda, const int* pivots, T* b, int ldb) {                \
    int info = 0;                                                                                                   \
    p##hetrs_(&uplo, &n, &k, a, &lda, pivots, b, &ldb, &info, 1);                                                   \
    return info;                                                                                                    \
  }
TT_LAPACK(Complex<float>, c)
TT_LAPACK(Complex<double>, z)
#undef TT_LAPACK

// Eigenvalues and singular values of real matrices and, below, of complex ones, which also require real workspace.
// eigen_svd.cc computes the sizes that these routines do not report.
#define TT_LAPACK(T, p)                                                                                                \
  extern "C" {                                                                                                         \
  void p##sytrd_(const char* uplo, const int* n, T* a, const int* lda, T* d, T* e, T* tau, T* work, const int* lwork,  \
                 int* info, size_t);                                                                                   \
  void p##stedc_(const char* job, const int* n, T* d, T* e, T* z, const int* ldz, T* work, const int* lwork,           \
                 int* iwork, const int* liwork, int* info, size_t);                                                    \
  void p##laed1_(const int* n, T* d, T* q, const int* ldq, int* order, const T* rho, const int* cut, T* work,          \
                 int* iwork, int* info);                                                                               \
  void p##syevd_(const char* job, const char* uplo, const int* n, T* a, const int* lda, T* values, T* work,            \
                 const int* lwork, int* iwork, const int* liwork, int* info, size_t, size_t);                          \
  void p##geev_(const char* left, const char* right, const int* n, T* a, const int* lda, T* re, T* im, T* vl,          \
                const int* ldvl, T* vr, const int* ldvr, T* work, const int* lwork, int* info, size_t, size_t);        \
  void p##gesdd_(const char* job, const int* m, const int* n, T* a, const int* lda, T* s, T* u, const int* ldu, T* vt, \
                 const int* ldvt, T* work, const int* lwork, int* iwork, int* info, size_t);                           \
  }                                                                                                                    \
  inline int hetrd(char uplo, int n, T* a, int lda, T* d, T* e, T* tau, Workspace<T>& space) {                         \
    int info = 0;                                                                                                      \
    const int size = space.work_size();                                                                                \
    p##sytrd_(&uplo, &n, a, &lda, d, e, tau, space.work.data(), &size, &info, 1);                                      \
    return info;                                                                                                       \
  }                                                                                                                    \
  /* Eigenvalues (d) and eigenvectors (z) of the tridiagonal matrix itself. `work` has 1 + 4 n + n^2 elements, `iwork` \
     3 + 5 n. */                                                                                                       \
  inline int stedc(int n, T* d, T* e, T* z, int ldz, T* work, int* iwork) {                                            \
    int info = 0;                                                                                                      \
    const char job = 'I';                                                                                              \
    const int size = 1 + 4 * n + n * n, isize = 3 + 5 * n;                                                             \
    p##stedc_(&job, &n, d, e, z, &ldz, work, &size, iwork, &isize, &info, 1);                                          \
    return info;                                                                                                       \
  }                                                                                                                    \
  /* Eigenvalues (d) and eigenvectors (q) of diag(d) + rho z z^T, where z is the last row of q's first `cut` rows and  \
     the first row of the others. Element i of the ascending values is d[order[i] - 1]; before, `order` sorts each of  \
     the two parts. `work` has 4 n + n^2 elements, `iwork` 4 n. */                                                     \
  inline int laed1(int n, T* d, T* q, int ldq, int* order, T rho, int cut, T* work, int* iwork) {                      \
    int info = 0;                                                                                                      \
    p##laed1_(&n, d, q, &ldq, order, &rho, &cut, work, iwork, &info);                                                  \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int heevd(char job, char uplo, int n, T* a, int lda, T* values, Workspace<T>& space) {                        \
    int info = 0;                                                                                                      \
    const int size = space.work_size(), isize = space.integers_size();                                                 \
    p##syevd_(&job, &uplo, &n, a, &lda, values, space.work.data(), &size, space.integers.data(), &isize, &info, 1, 1); \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int geev(char job, int n, T* a, int lda, T* re, T* im, T* vectors, int ldv, Workspace<T>& space) {            \
    int info = 0;                                                                                                      \
    const char left = 'N';                                                                                             \
    const int one = 1, size = space.work_size();                                                                       \
    p##geev_(&left, &job, &n, a, &lda, re, im, nullptr, &one, vectors, &ldv, space.work.data(), &size, &info, 1, 1);   \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int gesdd(char job, int m, int n, T* a, int lda, T* s, T* u, int ldu, T* vh, int ldvh, Workspace<T>& space) { \
    int info = 0;                                                                                                      \
    const int size = space.work_size();                                                                                \
    p##gesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vh, &ldvh, space.work.data(), &size, space.integers.data(), &info,    \
              1);                                                                                                      \
    return info;                                                                                                       \
  }

TT_LAPACK(float, s)
TT_LAPACK(double, d)
#undef TT_LAPACK

#define TT_LAPACK(T, R, p)                                                                                             \
  extern "C" {                                                                                                         \
  void p##hetrd_(const char* uplo, const int* n, T* a, const int* lda, R* d, R* e, T* tau, T* work, const int* lwork,  \
                 int* info, size_t);                                                                                   \
  void p##heevd_(const char* job, const char* uplo, const int* n, T* a, const int* lda, R* values, T* work,            \
                 const int* lwork, R* rwork, const int* lrwork, int* iwork, const int* liwork, int* info, size_t,      \
                 size_t);                                                                                              \
  void p##geev_(const char* left, const char* right, const int* n, T* a, const int* lda, T* values, T* vl,             \
                const int* ldvl, T* vr, const int* ldvr, T* work, const int* lwork, R* rwork, int* info, size_t,       \
                size_t);                                                                                               \
  void p##gesdd_(const char* job, const int* m, const int* n, T* a, const int* lda, R* s, T* u, const int* ldu, T* vt, \
                 const int* ldvt, T* work, const int* lwork, R* rwork, int* iwork, int* info, size_t);                 \
  }                                                                                                                    \
  inline int hetrd(char uplo, int n, T* a, int lda, R* d, R* e, T* tau, Workspace<T>& space) {                         \
    int info = 0;                                                                                                      \
    const int size = space.work_size();                                                                                \
    p##hetrd_(&uplo, &n, a, &lda, d, e, tau, space.work.data(), &size, &info, 1);                                      \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int heevd(char job, char uplo, int n, T* a, int lda, R* values, Workspace<T>& space) {                        \
    int info = 0;                                                                                                      \
    const int size = space.work_size(), rsize = space.reals_size(), isize = space.integers_size();                     \
    p##heevd_(&job, &uplo, &n, a, &lda, values, space.work.data(), &size, space.reals.data(), &rsize,                  \
              space.integers.data(), &isize, &info, 1, 1);                                                             \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int geev(char job, int n, T* a, int lda, T* values, T* vectors, int ldv, Workspace<T>& space) {               \
    int info = 0;                                                                                                      \
    const char left = 'N';                                                                                             \
    const int one = 1, size = space.work_size();                                                                       \
    p##geev_(&left, &job, &n, a, &lda, values, nullptr, &one, vectors, &ldv, space.work.data(), &size,                 \
             space.reals.data(), &info, 1, 1);                                                                         \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int gesdd(char job, int m, int n, T* a, int lda, R* s, T* u, int ldu, T* vh, int ldvh, Workspace<T>& space) { \
    int info = 0;                                                                                                      \
    const int size = space.work_size();                                                                                \
    p##gesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vh, &ldvh, space.work.data(), &size, space.reals.data(),              \
              space.integers.data(), &info, 1);                                                                        \
    return info;                                                                                                       \
  }

TT_LAPACK(Complex<float>, float, c)
TT_LAPACK(Complex<double>, double, z)
#undef TT_LAPACK

}  // namespace tt::cpu::lapack
