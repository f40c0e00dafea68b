// Gradients of matrix factorisations and of functions computed from them.
//
// From: Giles, "Collected matrix derivative results" (2008); Townsend, "Differentiating the singular value
// decomposition" (2016); Walter and Lehmann, "Algorithmic differentiation of linear algebra functions" (2012); Murray,
// "Differentiation of the Cholesky decomposition" (2016); Golub and Pereyra, "The differentiation of pseudo-inverses"
// (1973); Mathias, "A chain rule for matrix functions" (1996); Boeddeker et al., "On the computation of complex-valued
// gradients with application to statistically optimum beamforming" (2017).
#pragma once

#include <string_view>

#include "autograd/formulas/formulas.h"

namespace tt::autograd::formulas {

Tensor lu_factored_grad(const Tensor& g, const Tensor& lu, const Tensor& pivots);
Tensors lu_solved_grad(const Tensor& g, const Tensor& a, const Tensor& lu, const Tensor& pivots, const Tensor& result,
                       bool transposed);
Tensor lu_determinant_grad(const Tensor& g, const Tensor& a, const Tensor& lu, const Tensor& pivots,
                           const Tensor& result);
Tensor lu_log_determinant_grad(const Tensor& gsign, const Tensor& gsize, const Tensor& a, const Tensor& lu,
                               const Tensor& pivots, const Tensor& sign);
Tensor cholesky_grad(const Tensor& g, const Tensor& l);
Tensors triangular_solved_grad(const Tensor& g, const Tensor& a, const Tensor& result, bool upper, bool transposed,
                               bool unitriangular);
// Throws Error (RuntimeError) if the gradient depends on values that `mode` does not compute.
Tensor qr_grad(const Tensor& gq, const Tensor& gr, const Tensor& q, const Tensor& r, std::string_view mode);
Tensor eig_grad(const Tensor& gl, const Tensor& gv, const Tensor& l, const Tensor& v, bool vectors);
Tensor eigh_grad(const Tensor& gl, const Tensor& gv, const Tensor& l, const Tensor& v, bool vectors);
Tensor svd_grad(const Tensor& gu, const Tensor& gs, const Tensor& gvh, const Tensor& u, const Tensor& s,
                const Tensor& vh, bool vectors);
Tensor pseudo_inverse_grad(const Tensor& g, const Tensor& input, const Tensor& result);
Tensor matrix_exp_grad(const Tensor& g, const Tensor& input);

}  // namespace tt::autograd::formulas
