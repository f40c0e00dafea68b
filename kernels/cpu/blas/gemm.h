// gemm: matrix products that oneDNN does not compute (float64, integers, float16 on most machines), and small ones for
// which its overhead is too high.
//
// Supports any strides and any size, including zero. Thread-safe. Throws Cancelled.
#pragma once

#include <cstdint>

#include "engine/schema/dtype.h"
#include "kernels/common/linalg/matmul_operand.h"

namespace tt::cpu {

// A batch of products. Entry i of the batch starts at a.data + a_offsets[i] elements, likewise for b; the results are
// stored one after the other. Offsets may be null for a batch of one.
struct Gemm {
  DType dtype;  // dtype of a, b and c; bool is not supported
  int64_t m, n, k;
  Matrix a;  // m x k
  Matrix b;  // k x n
  void* c;   // m x n, row-major, overwritten
  int64_t batch = 1;
  const int64_t* a_offsets = nullptr;
  const int64_t* b_offsets = nullptr;
};

// Products of 32-bit and 64-bit floats use OpenBLAS if one stride of each matrix is 1; all others use tiled_gemm()
// (benchmarks/gemm_bench compares them, and oneDNN).
void gemm(const Gemm& g);

// Multiplies with packed panels and a register tile, as in Goto and van de Geijn, "Anatomy of high-performance matrix
// multiplication" (2008). Accumulates 16-bit floats in float, other dtypes in the type itself (integers wrap around).
void tiled_gemm(const Gemm& g);

}  // namespace tt::cpu
