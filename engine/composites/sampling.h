// Functions called by the composites of sampling, scattering, scans and statistics, in addition to operators.
#pragma once

#include "engine/composites/composites.h"

namespace tt::composites {

// Supports every mode and padding of PyTorch's grid_sample; differentiable in both arguments.
Tensor sample_grid(const Tensor& input, const Tensor& grid, std::string_view mode, std::string_view padding_mode,
                   bool align_corners);
Tensor make_affine_grid(const Tensor& theta, SizesView size, bool align_corners);

// Expands a list of indices along `dim` to one index per element of `source`.
Tensor expand_index(const Tensor& index, const Tensor& source, int64_t dim);
Tensor scatter_with_reduction(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src,
                              std::string_view reduce, bool include_self);
Tensor scatter_masked(const Tensor& input, const Tensor& mask, const Tensor& source);
Tensor fill_main_diagonal(const Tensor& input, const Scalar& value, bool wrap);

Tensor quantiles(const Tensor& input, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                 std::string_view interpolation, bool ignore_nan);
Tensor median_ignoring_nan(const Tensor& input);
Tensors median_dim_ignoring_nan(const Tensor& input, int64_t dim, bool keepdim);
Tensor is_member(const Tensor& elements, const Tensor& test_elements, bool invert);
Tensor cumulative_logsumexp(const Tensor& input, int64_t dim);
// The areas between adjacent values along dim, at the positions x or, if x is undefined, with the spacing dx.
Tensor trapezoid_sum(const Tensor& y, const Tensor& x, double dx, int64_t dim);
Tensor trapezoids(const Tensor& y, const Tensor& x, double dx, int64_t dim);
Tensor histogram_counts(const Tensor& input, int64_t bins, double min, double max);
// For columns that are observations; absent weights are undefined.
Tensor covariance(const Tensor& input, int64_t correction, const Tensor& fweights, const Tensor& aweights);
Tensor correlation(const Tensor& input);
Tensor vandermonde(const Tensor& x, std::optional<int64_t> columns, bool increasing);
// Over the given dimensions, or over all if none are given, of the bits of int64 or float64.
Tensor exclusive_or_of_bits(const Tensor& input, std::optional<absl::Span<const int64_t>> dims, bool keepdim);
Tensor rotate_90(const Tensor& input, int64_t k, SizesView dims);

// Uniform numbers in [0, 1) of input's shape: float64 for a float64 input, else float32, because the tails of a
// distribution need more digits than a 16-bit number has.
Tensor uniform_numbers(const Tensor& input);
double reciprocal_log1m(double p);  // 1 / log(1 - p)
Tensor broadcast_to_other(const Tensor& input, const Tensor& other);

}  // namespace tt::composites
