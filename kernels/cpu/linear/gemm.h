// gemm: matrix products that oneDNN does not compute (float64, integers, float16 on most machines) or has too much
// overhead for (small ones).
//
// Floats of 32 and 64 bits are OpenBLAS's where a matrix has a stride of 1 (benchmarks/gemm_bench compares the three).
// The rest is our own: packed panels and a register tile as in Goto and van de Geijn, "Anatomy of high-performance
// matrix multiplication" (2008). Any strides and sizes, zero included. Thread-safe. Throws Cancelled.
#pragma once

#include <cstdint>

#include "engine/schema/dtype.h"
#include "kernels/common/matmul_operand.h"

namespace tt::cpu {

// A batch of products. Entry i of the batch starts at a.data + a_offsets[i] elements, likewise b;
// results are contiguous one after the other. Offsets may be null for a batch of one.
struct Gemm {
  DType dtype;  // of all three; bool has none
  int64_t m, n, k;
  Matrix a;  // m x k
  Matrix b;  // k x n
  void* c;   // m x n, row-major, overwritten
  int64_t batch = 1;
  const int64_t* a_offsets = nullptr;
  const int64_t* b_offsets = nullptr;
};

// Sums in float for 16-bit floats, in the type itself otherwise (integers wrap around).
void gemm(const Gemm& g);

}  // namespace tt::cpu
