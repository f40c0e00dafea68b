// accumulate_product: the products of blocked decompositions.
#pragma once

#include <new>
#include <optional>
#include <type_traits>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "kernels/cpu/blas/routines.h"
#include "oneapi/dnnl/dnnl.h"

namespace tt::cpu {

// Multiplications below which a second thread costs more than it saves.
inline constexpr double kMinSharedWork = 1.5e6;

// c = alpha op(a) op(b) + beta c for column-major matrices, where c is m x n and op() is 'N', 'T' or 'C'. Large
// products use the caller's OpenMP threads. float32 uses oneDNN, which is up to three times as fast as OpenBLAS if one
// of the sizes is about 64. Throws std::bad_alloc.
template <typename T>
void accumulate_product(char op_a, char op_b, int m, int n, int k, std::type_identity_t<T> alpha, const T* a, int lda,
                        const T* b, int ldb, std::type_identity_t<T> beta, T* c, int ldc) {
  if (m == 0 || n == 0) return;
  std::optional<PoolLease> alone;
  if (static_cast<double>(m) * n * k < kMinSharedWork) alone.emplace(1);
  if constexpr (std::is_same_v<T, float>) {
    if (op_a == 'C') op_a = 'T';
    if (op_b == 'C') op_b = 'T';
    // oneDNN's matrices are row-major: c^T = op(b)^T op(a)^T.
    const dnnl_status_t status = dnnl_sgemm(op_b, op_a, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc);
    if (status == dnnl_out_of_memory) throw std::bad_alloc();
    check(status == dnnl_success, "oneDNN: a product failed, status ", static_cast<int>(status));
  } else {
    lapack::gemm(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  }
}

}  // namespace tt::cpu
