// Products of complex numbers along dimensions, and sums of exponentials: what mixes their parts.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::cpu {

// `out` is contiguous and complex; `input` of any dtype. No `dims` are all of them.
void complex_prod(const Tensor& input, absl::Span<const int64_t> dims, Tensor& out);
void complex_logsumexp(const Tensor& input, absl::Span<const int64_t> dims, Tensor& out);
void complex_cumprod(const Tensor& input, int64_t dim, Tensor& out);

}  // namespace tt::cpu
