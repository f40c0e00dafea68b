// Fourier transforms of tensors of any layout by a library such as cuFFT (runtime/fft.h).
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/cuda/runtime/fft.h"

namespace tt::cuda {

// Transforms x along `dims` into `out` and multiplies by `scale`. Requires 1 to kMaxFftDims distinct, non-negative
// dimensions. The half spectrum of a real transform is along the last of them. Neither tensor may be empty. x and out
// may be the same tensor of complex numbers; otherwise x is unchanged.
// Returns false, with out unchanged, if the library is missing or does not support the transform.
bool transform_by_library(FftKind kind, const Tensor& x, absl::Span<const int64_t> dims, bool forward, double scale,
                          const Tensor& out);

}  // namespace tt::cuda
