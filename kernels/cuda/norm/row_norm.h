// Normalisation of rows by their own statistics, shared by layer, RMS and group normalisation.
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

// Shape of the rows: channels x space elements each. A sample is `groups` consecutive rows, which have different
// channels.
struct RowNorm {
  int64_t rows, channels, groups = 1, space = 1;

  TT_FUNCTION int64_t n() const { return channels * space; }
  TT_FUNCTION int64_t first_channel(int64_t row) const { return groups == 1 ? 0 : row % groups * channels; }
  TT_FUNCTION int64_t channel(int64_t first, int64_t i) const {
    return first + (space == 1 ? i : static_cast<int64_t>(static_cast<uint32_t>(i) / static_cast<uint32_t>(space)));
  }
  int64_t all_channels() const { return groups * channels; }
};

// If `mean` is undefined, rows are not centred (RMS normalisation). `weight` and `bias` have one number per channel and
// may be undefined. Throws Error: RuntimeError if the size of `weight` or `bias` does not match the shape,
// NotImplementedError if a row has 2^32 or more elements.
void normalize_rows(const RowNorm& shape, const Tensor& input, const Tensor& weight, const Tensor& bias, double eps,
                    const Tensor& output, const Tensor& mean, const Tensor& rstd);
// Computes the gradients of normalize_rows(). `grad_bias` may be undefined.
void normalize_rows_backward(const RowNorm& shape, const Tensor& grad, const Tensor& input, const Tensor& weight,
                             const Tensor& mean, const Tensor& rstd, const Tensor& grad_input,
                             const Tensor& grad_weight, const Tensor& grad_bias);

}  // namespace tt::cuda
