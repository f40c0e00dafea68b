// product: a matrix product by whatever is fastest for it.
//
// oneDNN for float32 and bfloat16 of some size, gemv for vectors, our own gemm for the rest.
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/cpu/linear/gemm.h"

namespace tt::cpu {

// c = a x b, and `bias` (n contiguous elements of the same dtype; null: none) added to every row.
// `weights`, where given, is the tensor that b is (its first two strides either way round): a packed copy
// of it may be kept for the next time.
void product(const Gemm& g, const void* bias = nullptr, const Tensor* weights = nullptr);

}  // namespace tt::cpu
