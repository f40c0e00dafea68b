// Complex prod and logsumexp along dimensions. Unlike sums, they cannot be computed on real and imaginary parts
// separately.
#pragma once

#include "engine/tensor/tensor.h"

namespace tt::cuda {

// `out` is contiguous and complex; `input` has any dtype. Empty `dims` means all dimensions.
void complex_prod(const Tensor& input, absl::Span<const int64_t> dims, Tensor& out);
void complex_logsumexp(const Tensor& input, absl::Span<const int64_t> dims, Tensor& out);

}  // namespace tt::cuda
