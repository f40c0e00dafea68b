// Solver: interface to a library for matrix decompositions.
#pragma once

#include <memory>

#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

// The requested singular vectors: none, one per singular value, or a full basis.
enum class SingularVectors { kNone, kThin, kFull };

// Matrices are on the device, column-major, contiguous and non-empty, of dtype float32, float64, complex64 or
// complex128. `info`, one number per matrix, on the device, is set to 0 or to the error code of the corresponding
// LAPACK routine.
//
// Each call enqueues one decomposition in the queue's stream, after all work added to it, and may wait for the device.
// Requires that no graph is being captured in the stream. Thread-safe. Throws Error (RuntimeError) if the library
// fails.
class Solver {
 public:
  virtual ~Solver() = default;
  // Overwrites a (n x n), of which the upper triangle is read, with U, where a = U^H U. The lower triangle is
  // undefined.
  virtual void cholesky(const Queue& queue, DType dtype, int64_t n, void* a, int32_t* info) = 0;
  // The same for a batch; `matrices` is an array of addresses, on the device.
  virtual void batched_cholesky(const Queue& queue, DType dtype, int64_t n, void** matrices, int64_t batch,
                                int32_t* info) = 0;
  // Overwrites a (m x n) with L and U; stores min(m, n) pivots, counted from 1.
  virtual void lu(const Queue& queue, DType dtype, int64_t m, int64_t n, void* a, int64_t* pivots, int32_t* info) = 0;
  // Overwrites a (m x n) with R and the reflection vectors below it, and stores their min(m, n) factors in `tau`.
  virtual void qr(const Queue& queue, DType dtype, int64_t m, int64_t n, void* a, void* tau, int32_t* info) = 0;
  // Overwrites q (m x columns) with the first columns of Q, given k reflections below its diagonal. m >= columns >= k.
  virtual void expand_q(const Queue& queue, DType dtype, int64_t m, int64_t columns, int64_t k, void* q,
                        const void* tau, int32_t* info) = 0;
  // Overwrites a (n x n), of which one triangle is read, with its eigenvectors, if requested. Stores real `values` in
  // ascending order.
  virtual void eigh(const Queue& queue, DType dtype, bool upper, bool vectors, int64_t n, void* a, void* values,
                    int32_t* info) = 0;
  // The same for a batch of matrices stored one after the other. Returns false, and does nothing, if the library is too
  // old to have the function.
  virtual bool batched_eigh(const Queue& queue, DType dtype, bool upper, bool vectors, int64_t n, void* a, void* values,
                            int64_t batch, int32_t* info) = 0;
  // Overwrites a (m x n, m >= n). u has m rows and n or m columns; vh is n x n. Stores real `values` in descending
  // order.
  virtual void svd(const Queue& queue, DType dtype, SingularVectors wanted, int64_t m, int64_t n, void* a, void* u,
                   void* values, void* vh, int32_t* info) = 0;
  // Whether the library has eig().
  virtual bool has_eig() const = 0;
  // Overwrites a (n x n). `values` are complex. `vectors` (n x n, or null if not requested) have the dtype of a: for a
  // real matrix, two columns contain the real and imaginary parts of the vector of the first of two conjugate
  // eigenvalues, the one with the positive imaginary part.
  virtual void eig(const Queue& queue, DType dtype, int64_t n, void* a, void* values, void* vectors, int32_t* info) = 0;
};

// Returns the process-wide instance, loaded at first use: cuSOLVER. Returns null if it is missing; decompositions then
// use our own kernels.
Solver* solver();
std::unique_ptr<Solver> make_solver();

}  // namespace tt::cuda
