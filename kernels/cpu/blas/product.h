// product: computes a matrix product with the fastest available method.
//
// Uses gemv for vectors, oneDNN for float32 and bfloat16 above a minimum size, and gemm otherwise.
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/cpu/blas/gemm.h"

namespace tt::cpu {

// c = a x b, with `bias` (n contiguous elements of the same dtype, or null) added to every row. `weights`, if given,
// is the tensor that holds b (possibly transposed); a packed copy of it may be cached for later calls.
void product(const Gemm& g, const void* bias = nullptr, const Tensor* weights = nullptr);

}  // namespace tt::cpu
