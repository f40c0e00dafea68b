// product: computes a matrix product with the fastest available method.
//
// Uses gemv for vectors, few_rows for few rows and many weights in float32, oneDNN for other float32 and bfloat16 above
// a minimum size, and gemm otherwise.
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/cpu/blas/gemm.h"

namespace tt::cpu {

// What follows a product: c = activation(a x b + bias + added).
struct ProductEpilogue {
  enum class Activation : uint8_t { kNone, kGelu, kGeluTanh, kSilu, kSigmoid, kTanh };

  const void* added = nullptr;  // m x n, row-major and contiguous, of c's dtype; or null
  Activation activation = Activation::kNone;
};

// c = a x b, with `bias` (n contiguous elements of the same dtype, or null) added to every row. `weights`, if given,
// is the tensor that holds b (possibly transposed); a packed copy of it may be cached for later calls.
void product(const Gemm& g, const void* bias = nullptr, const Tensor* weights = nullptr);

// c = a x b + bias + added, if few_rows() is the fastest method; `added` is as in ProductEpilogue. Returns false, and
// computes nothing, otherwise.
bool product_of_few_rows(const Gemm& g, const void* bias, const void* added, const Tensor& weights);

// Computes the product and its epilogue in oneDNN, which applies it to parts of c that are still in registers. Only
// float32, one batch entry. Returns false, and computes nothing, if another method is faster or oneDNN does not support
// the operands.
bool product_with(const Gemm& g, const void* bias, const Tensor* weights, const ProductEpilogue& epilogue);

}  // namespace tt::cpu
