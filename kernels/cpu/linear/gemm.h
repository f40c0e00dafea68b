// gemm: our own matrix product, for what oneDNN has no type for (float64, integers, float16), for
// strides it would have to copy, and for products too small for its overhead.
//
// Packed panels and a register tile as in Goto and van de Geijn, "Anatomy of high-performance
// matrix multiplication" (2008). Any strides; any size, zero included. Thread-safe.
#pragma once

#include <cstdint>

#include "engine/schema/dtype.h"
#include "kernels/common/linalg/matmul_operand.h"

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
