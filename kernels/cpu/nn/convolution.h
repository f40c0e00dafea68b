// Convolutions over one to three spatial dimensions: forward pass and both gradients.
//
// A transposed convolution is the gradient of a convolution: its forward pass is convolution_data(), its input
// gradient convolution(), and its weight gradient convolution_weights() with input and gradient exchanged.
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/common/nn/convolution_shape.h"

namespace tt::cpu {

// x: N x C x space; w: O x C/groups x kernel; bias: O or undefined; out: N x O x space. Requires matching
// shapes (checked by the operators' shape rules), which may be empty, and equal dtypes other than bool.
void convolution(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvolutionParams& params, Tensor& out);
// Computes dx from the gradient g of out. dx must be contiguous and is overwritten.
void convolution_data(const Tensor& g, const Tensor& w, const ConvolutionParams& params, Tensor& dx);
// Computes dw from g and x. dw must be contiguous and is overwritten.
void convolution_weights(const Tensor& g, const Tensor& x, const ConvolutionParams& params, Tensor& dw);

// The same functions, implemented by copying patches into a matrix, for dtypes that oneDNN does not support. All
// tensors must be contiguous; no bias.
void patch_convolution(const Tensor& x, const Tensor& w, const ConvolutionParams& params, Tensor& out);
void patch_convolution_data(const Tensor& g, const Tensor& w, const ConvolutionParams& params, Tensor& dx);
void patch_convolution_weights(const Tensor& g, const Tensor& x, const ConvolutionParams& params, Tensor& dw);

}  // namespace tt::cpu
