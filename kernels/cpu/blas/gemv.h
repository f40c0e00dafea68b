// gemv: a row vector times a matrix, which is limited by memory bandwidth.
#pragma once

#include "kernels/cpu/blas/gemm.h"

namespace tt::cpu {

// Whether gemv supports `g`: the result is one row or one column of float32 or float64, and the matrix is contiguous
// along rows or columns. With 16-bit floats, gemv supports only products of contiguous vectors without a batch.
bool is_gemv(const Gemm& g);
// Requires is_gemv(g). Thread-safe.
void gemv(const Gemm& g);

}  // namespace tt::cpu
