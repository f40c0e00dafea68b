// gemv: a row times a matrix, which is bound by memory, not by arithmetic.
#pragma once

#include "kernels/cpu/linear/gemm.h"

namespace tt::cpu {

// Whether `g` is one that gemv takes: one row or one column of result, float32 or float64, and
// the matrix contiguous along rows or columns. Of 16-bit floats, products of
// contiguous vectors alone, and no batches.
bool is_gemv(const Gemm& g);
// Requires is_gemv(g). Thread-safe.
void gemv(const Gemm& g);

}  // namespace tt::cpu
