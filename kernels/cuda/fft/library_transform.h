// Fourier transforms by the library (runtime/fft.h), of tensors of any layout.
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/cuda/runtime/fft.h"

namespace tt::cuda {

// Transforms x along `dims` into `out`, times `scale`. Requires 1 to kMostFftDims different dimensions, none negative;
// of a real transform the last one is the one that is real at one end and half a spectrum at the other. x and out may
// be the same tensor of complex numbers; otherwise x is unchanged. Neither is empty. Returns false, with out unchanged,
// where there is no library or it does not support the transform.
bool transform_by_library(FftKind kind, const Tensor& x, absl::Span<const int64_t> dims, bool forward, double scale,
                          const Tensor& out);

}  // namespace tt::cuda
