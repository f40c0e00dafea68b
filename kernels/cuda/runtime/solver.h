// Solver: interface to a library for matrix decompositions.
#pragma once

#include <memory>

#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

// The requested singular vectors: none, one per singular value, or a full basis.
enum class SingularVectors { kNone, kThin, kFull };

// Matrices are on the device, column-major, contiguous and non-empty, of dtype float32, float64, complex64 or
// complex128. `info` is on the device and has one number per matrix, which is set to 0 or to the error code of the
// corresponding LAPACK routine.
//
// Each call enqueues its work in the queue's stream, after all work added before, and may wait for the device.
// Requires that no graph is being captured in the stream. Thread-safe. Throws Error (RuntimeError) if the library
// fails.
class Solver {
 public:
  virtual ~Solver() = default;
  // Reads the upper triangle of a (n x n) and overwrites it with U, where a = U^H U. The lower triangle is undefined
  // afterwards.
  virtual void cholesky(const Queue& queue, DType dtype, int64_t n, void* a, int32_t* info) = 0;
  // Like cholesky(), for a batch. `matrices` is an array of the matrices' addresses, on the device.
  virtual void batched_cholesky(const Queue& queue, DType dtype, int64_t n, void** matrices, int64_t batch,
                                int32_t* info) = 0;
  // Overwrites a (m x n) with L and U. Stores min(m, n) pivots, which are row numbers counted from 1.
  virtual void lu(const Queue& queue, DType dtype, int64_t m, int64_t n, void* a, int64_t* pivots, int32_t* info) = 0;
  // Overwrites a (m x n) with R and, below the diagonal, the reflection vectors. Stores the min(m, n) factors of the
  // reflections in `tau`.
  virtual void qr(const Queue& queue, DType dtype, int64_t m, int64_t n, void* a, void* tau, int32_t* info) = 0;
  // Overwrites q (m x columns) with the first columns of Q. On entry, `q` contains k reflection vectors below its
  // diagonal. Requires m >= columns >= k.
  virtual void expand_q(const Queue& queue, DType dtype, int64_t m, int64_t columns, int64_t k, void* q,
                        const void* tau, int32_t* info) = 0;
  // Reads one triangle of a (n x n), the upper one if `upper`. Overwrites `a`, with the eigenvectors if `vectors`.
  // Stores real `values` in ascending order.
  virtual void eigh(const Queue& queue, DType dtype, bool upper, bool vectors, int64_t n, void* a, void* values,
                    int32_t* info) = 0;
  // Like eigh(), for a batch of matrices stored one after the other. Returns false, and does nothing, if the library is
  // too old to have the function.
  virtual bool batched_eigh(const Queue& queue, DType dtype, bool upper, bool vectors, int64_t n, void* a, void* values,
                            int64_t batch, int32_t* info) = 0;
  // Requires m >= n. Overwrites a (m x n). `u` has m rows and n columns or, for kFull, m columns; `vh` is n x n. Stores
  // real `values` in descending order.
  virtual void svd(const Queue& queue, DType dtype, SingularVectors wanted, int64_t m, int64_t n, void* a, void* u,
                   void* values, void* vh, int32_t* info) = 0;
  // Whether the library has eig().
  virtual bool has_eig() const = 0;
  // Overwrites a (n x n). `values` has n complex numbers. `vectors` is n x n with the dtype of `a`, or null if not
  // requested. If `a` is real, two conjugate eigenvalues have two columns of `vectors`: the real and the imaginary
  // parts of the vector of the first eigenvalue, whose imaginary part is positive.
  virtual void eig(const Queue& queue, DType dtype, int64_t n, void* a, void* values, void* vectors, int32_t* info) = 0;
};

// Returns the process-wide instance, loaded at first use: cuSOLVER. Returns null if cuSOLVER is missing; decompositions
// then use our own kernels.
Solver* solver();
std::unique_ptr<Solver> make_solver();

}  // namespace tt::cuda
