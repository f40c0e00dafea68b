// Solver: decompositions of matrices by a library.
#pragma once

#include <memory>

#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

// What of the singular vectors is wanted: as many as there are singular values, or a whole basis.
enum class SingularVectors { kNone, kThin, kFull };

// Matrices are column-major without gaps, on the device, of float32, float64, complex64 or complex128; none is empty.
// `info`, one number per matrix on the device, becomes 0, or what LAPACK's routine of the same purpose documents.
//
// Each call enqueues one decomposition in the queue's stream, after everything that was added to it, and may wait for
// the device. Requires that no graph is captured in the stream. Thread-safe. Throws Error (RuntimeError) where the
// library fails.
class Solver {
 public:
  virtual ~Solver() = default;
  // a (n x n), of which the upper triangle is read, becomes U, a = U^H U. The other triangle's elements are undefined.
  virtual void cholesky(const Queue& queue, DType dtype, int64_t n, void* a, int32_t* info) = 0;
  // The same of several; `matrices` is their addresses, on the device.
  virtual void batched_cholesky(const Queue& queue, DType dtype, int64_t n, void** matrices, int64_t batch,
                                int32_t* info) = 0;
  // a (m x n) becomes L and U; min(m, n) pivots, counted from 1.
  virtual void lu(const Queue& queue, DType dtype, int64_t m, int64_t n, void* a, int64_t* pivots, int32_t* info) = 0;
  // a (m x n) becomes R and, below it, the reflections' vectors, whose factors are the min(m, n) of `tau`.
  virtual void qr(const Queue& queue, DType dtype, int64_t m, int64_t n, void* a, void* tau, int32_t* info) = 0;
  // q (m x columns) becomes the first columns of Q, from k reflections below its diagonal. m >= columns >= k.
  virtual void expand_q(const Queue& queue, DType dtype, int64_t m, int64_t columns, int64_t k, void* q,
                        const void* tau, int32_t* info) = 0;
  // a (n x n), of which one triangle is read, becomes its eigenvectors, where those are wanted; rising `values`, real.
  virtual void eigh(const Queue& queue, DType dtype, bool upper, bool vectors, int64_t n, void* a, void* values,
                    int32_t* info) = 0;
  // The same of several matrices, one after the other in memory. Returns false, with nothing done, where the library is
  // older than the function.
  virtual bool batched_eigh(const Queue& queue, DType dtype, bool upper, bool vectors, int64_t n, void* a, void* values,
                            int64_t batch, int32_t* info) = 0;
  // a (m x n, m >= n) is overwritten; u gets m rows, n or m columns; vh is n x n; falling `values`, real.
  virtual void svd(const Queue& queue, DType dtype, SingularVectors wanted, int64_t m, int64_t n, void* a, void* u,
                   void* values, void* vh, int32_t* info) = 0;
  // Whether the library has eig().
  virtual bool has_eig() const = 0;
  // a (n x n) is overwritten. `values` are complex. `vectors` (n x n, or null where they are not wanted) have the dtype
  // of a: of a real matrix two columns are the real and imaginary parts of the vector of the first of two conjugate
  // eigenvalues, of which the one with the positive imaginary part is first.
  virtual void eig(const Queue& queue, DType dtype, int64_t n, void* a, void* values, void* vectors, int32_t* info) = 0;
};

// The process's, opened at first use: cuSOLVER. Null where it is absent: decompositions are our own kernels' then.
Solver* solver();
std::unique_ptr<Solver> make_solver();

}  // namespace tt::cuda
