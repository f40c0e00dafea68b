// Gradient functions of the operators on components of sparse tensors. Gradient formulas may also call operators and
// formulas.h.
#pragma once

#include "autograd/formulas/formulas.h"

namespace tt::autograd::formulas {

// The gradient of sparse_gather: `g` added at the columns of `indices` to zeros of `sizes`.
Tensor sparse_gather_grad(const Tensor& g, const Tensor& indices, SizesView sizes);
// The gradients of values and other of sparse_csr_mm_extremum, whose results are of the entries `argument`.
Tensors sparse_extremum_grad(const Tensor& g, const Tensor& col, const Tensor& values, const Tensor& other,
                             const Tensor& argument);
// The gradients of values and other of sparse_bsr_mm.
Tensors sparse_bsr_mm_grad(const Tensor& g, const Tensor& crow, const Tensor& col, const Tensor& values,
                           const Tensor& other);
// The gradient of values2 of sparse_csr_matmul, whose result has the indices `crow` and `col`.
Tensor sparse_matmul_grad(const Tensor& g, const Tensor& crow, const Tensor& col, const Tensor& crow1,
                          const Tensor& col1, const Tensor& values1, const Tensor& crow2, const Tensor& col2,
                          int64_t columns);
// The gradients of values1 and values2 of sparse_csr_sampled_matmul.
Tensor sparse_sampled_grad_first(const Tensor& g, const Tensor& crow1, const Tensor& col1, const Tensor& crow2,
                                 const Tensor& col2, const Tensor& values2, const Tensor& crow, const Tensor& col,
                                 int64_t columns);
Tensor sparse_sampled_grad_second(const Tensor& g, const Tensor& crow1, const Tensor& col1, const Tensor& values1,
                                  const Tensor& crow2, const Tensor& col2, const Tensor& crow, const Tensor& col,
                                  int64_t columns);
// The gradients of values and other of sparse_csr_triangular_solve.
Tensors sparse_solve_grad(const Tensor& g, const Tensor& crow, const Tensor& col, const Tensor& values,
                          const Tensor& result, bool upper, bool transpose, bool unitriangular);
Tensor sparse_softmax_grad(const Tensor& g, const Tensor& result, const Tensor& group, int64_t groups, bool log);

}  // namespace tt::autograd::formulas
