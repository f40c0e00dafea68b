// Functions that gradient formulas call in addition to operators.
//
// All functions here are built from recorded operators, so they can be differentiated again. `g` is the gradient of the
// result. Dimensions may be negative, as in the operators.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "engine/dispatch/operand.h"
#include "engine/tensor/tensor.h"

namespace tt::autograd::formulas {

using Dims = std::optional<absl::Span<const int64_t>>;  // nullopt: all dimensions

Tensor cast(const Tensor& g, DType dtype);

// Complex numbers. conj() returns a real tensor unchanged.

Tensor conj(const Tensor& t);
Tensor conj(const Operand& t);
Tensor times_i(const Tensor& g);
Tensor angle_grad(const Tensor& g, const Operand& input);
Tensor sgn_grad(const Tensor& g, const Operand& input, const Tensor& result);
Tensor polar_grad_abs(const Tensor& g, const Operand& angle);
Tensor polar_grad_angle(const Tensor& g, const Tensor& result);
Tensor softsign_grad(const Tensor& g, const Operand& input);
Tensor acosh_grad(const Tensor& g, const Operand& input);

// Broadcasting and reductions.

// Sums `g` over the dimensions that were broadcast from `sizes`.
Tensor sum_to(const Tensor& g, SizesView sizes);
// The gradient of a sum: expands `g` over the dimensions that were reduced from `sizes`.
Tensor expand_reduced(const Tensor& g, SizesView sizes, Dims dims, bool keepdim);
Tensor expand_reduced(const Tensor& g, SizesView sizes, int64_t dim, bool keepdim);
Tensor expand_reduced(const Tensor& g, SizesView sizes, std::optional<int64_t> dim, bool keepdim);
// Number of elements that a reduction of `sizes` over `dims` combines into one.
int64_t reduced_count(SizesView sizes, Dims dims);
Tensor var_grad(const Tensor& g, const Tensor& input, Dims dims, int64_t correction, bool keepdim);
Tensor std_grad(const Tensor& g, const Tensor& input, const Tensor& result, Dims dims, int64_t correction,
                bool keepdim);
// Whether an element of a boolean tensor is true; false for a meta tensor. Waits for the value.
bool any_true(const Tensor& flags);
Tensor prod_grad(const Tensor& g, const Tensor& input);
Tensor prod_dim_grad(const Tensor& g, const Tensor& input, int64_t dim, bool keepdim);
// Gradient of amax and amin, and of max, min and median over all elements. Equal extrema share the gradient evenly; so
// do the elements that are NaN if the result is.
Tensor extremum_grad(const Tensor& g, const Tensor& input, const Tensor& result, Dims dims, bool keepdim);
// Gradients of clamp, where `min` or `max` may be absent. As in PyTorch 2.15, an element at a bound that is a number
// gets no gradient, and one at a bound that is a tensor shares it with the bound.
Tensor clamp_grad(const Tensor& g, const Operand& input, const Operand& min, const Operand& max);
Tensor clamp_grad_min(const Tensor& g, const Operand& input, const Operand& min, const Operand& max);
Tensor clamp_grad_max(const Tensor& g, const Operand& input, const Operand& min, const Operand& max);
// Gradient of max, min, median and kthvalue along a dimension: `g` at the selected elements, zeros elsewhere.
Tensor selected_grad(const Tensor& g, SizesView sizes, const Tensor& indices, int64_t dim, bool keepdim);
// Gradient of a reduction over the ranks of a group. Throws Error unless `op` is "sum", or "avg" with `sums`.
Tensor reduced_gradient(const Tensor& g, const Tensor& group, std::string_view op, bool sums);
Tensor norm_grad(const Tensor& g, const Tensor& input, const Tensor& result, double p, Dims dims, bool keepdim);
Tensor cumsum_grad(const Tensor& g, int64_t dim);
Tensor cumprod_grad(const Tensor& g, const Tensor& input, const Tensor& result, int64_t dim);

// Views and joining.

Tensor select_grad(const Tensor& g, SizesView sizes, int64_t dim, int64_t index);
Tensor slice_grad(const Tensor& g, SizesView sizes, int64_t dim, std::optional<int64_t> start,
                  std::optional<int64_t> end, int64_t step);
Tensor narrow_grad(const Tensor& g, SizesView sizes, int64_t dim, int64_t start);
Tensor diagonal_grad(const Tensor& g, SizesView sizes, int64_t offset, int64_t dim1, int64_t dim2);
Tensor as_strided_grad(const Tensor& g, const Tensor& input, SizesView size, SizesView stride,
                       std::optional<int64_t> offset);
// Returns the inverse of the permutation `dims`.
Sizes inverse_permutation(SizesView dims);
Tensor repeat_grad(const Tensor& g, SizesView sizes, SizesView repeats);
Tensors cat_grad(const Tensor& g, const std::vector<Sizes>& shapes, int64_t dim);
Tensors stack_grad(const Tensor& g, int64_t dim);

// Indexing. An element that several indices select gets the sum of their gradients.

Tensor index_select_grad(const Tensor& g, SizesView sizes, int64_t dim, const Tensor& index);
Tensor gather_grad(const Tensor& g, SizesView sizes, int64_t dim, const Tensor& index);
Tensor index_grad(const Tensor& g, SizesView sizes, const Tensors& indices);

// Products.

// Gradients of matmul, with its rules for one-dimensional and batched arguments.
Tensor matmul_grad_input(const Tensor& g, const Tensor& input, const Tensor& other);
Tensor matmul_grad_other(const Tensor& g, const Tensor& input, const Tensor& other);

// Pointwise.

Tensor pow_grad_input(const Tensor& g, const Operand& input, const Operand& exponent);
Tensor pow_grad_exponent(const Tensor& g, const Operand& input, const Operand& exponent, const Tensor& result);
// Masks for the gradients of fmax: the first is true where fmax returns `other`, the second where it returns `input`.
// The third and fourth are the same masks for fmin.
Tensor not_greater_equal(const Operand& input, const Operand& other);
Tensor greater_equal_or_nan(const Operand& input, const Operand& other);
Tensor not_less_equal(const Operand& input, const Operand& other);
Tensor less_equal_or_nan(const Operand& input, const Operand& other);
Tensor mish_grad(const Tensor& g, const Operand& input);
Tensor hardswish_grad(const Tensor& g, const Operand& input);
// The derivative of logaddexp(input, other) with respect to `input`.
Tensor logaddexp_share(const Operand& input, const Operand& other);
Tensor silu_second_derivative(const Tensor& g, const Operand& input);  // g times the second derivative of silu
Tensor gelu_tanh_second_derivative(const Operand& input);              // the second derivative of gelu (tanh)

}  // namespace tt::autograd::formulas
