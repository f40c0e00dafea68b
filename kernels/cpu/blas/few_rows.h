// few_rows: products of 2 to 64 rows with a matrix of weights.
//
// Up to about 16 rows such a product is limited by the bandwidth of memory, so that each weight is read from memory
// once, whatever the number of rows, and the next ones are fetched meanwhile. Only with AVX-512.
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/cpu/blas/gemm.h"

namespace tt::cpu {

// Whether few_rows() supports `g` and is faster than oneDNN: float32, one batch entry, 2 to 64 rows that are
// contiguous, and a b of at least 64 rows and 65,536 elements, which is contiguous along rows or columns.
bool is_few_rows(const Gemm& g);

// Whether few_rows() has a packed copy of the b of `g`, so that it supports any number of contiguous rows from 2, and
// oneDNN should not keep another copy. `weights` is the tensor that holds b.
bool has_panels(const Gemm& g, const Tensor& weights);

// c = a x b + bias + added. `bias` (n elements) and `added` (m x n, contiguous) may be null. `weights` is the tensor
// that holds b (possibly transposed); the second call before it is written caches a packed copy of it for later calls,
// in place of oneDNN's. Every element of c is the sum of its products in their order, so that its bits depend neither
// on the other rows nor on whether there is a copy. Requires is_few_rows(g), or has_panels(g, weights) and such rows.
// Thread-safe. Throws Cancelled.
void few_rows(const Gemm& g, const float* bias, const float* added, const Tensor& weights);

}  // namespace tt::cpu
