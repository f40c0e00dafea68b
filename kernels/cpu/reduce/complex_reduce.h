// Complex reductions that cannot treat real and imaginary parts separately: products and sums of exponentials.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::cpu {

// `out` must be contiguous and complex; `input` may have any dtype. An empty `dims` means all dimensions.
void complex_prod(const Tensor& input, absl::Span<const int64_t> dims, Tensor& out);
void complex_logsumexp(const Tensor& input, absl::Span<const int64_t> dims, Tensor& out);
void complex_cumprod(const Tensor& input, int64_t dim, Tensor& out);

}  // namespace tt::cpu
