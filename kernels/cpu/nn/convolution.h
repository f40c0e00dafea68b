// Convolutions over one to three spatial dimensions, forward and both gradients.
//
// A transposed convolution is another's backward: its forward is convolution_data, its gradient
// in the input convolution, in the weight convolution_weights with input and gradient exchanged.
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/common/nn/convolution_shape.h"

namespace tt::cpu {

// x: N x C x space; w: O x C/groups x kernel; bias: O or undefined; out: N x O x space, contiguous.
// Requires that the shapes fit (the operators' shape rules have seen to that); empty ones are fine.
// The dtypes are equal; any but bool.
void convolution(const Tensor& x, const Tensor& w, const Tensor& bias, const Slide& slide, Tensor& out);
// dx from the gradient g of out. dx is contiguous and overwritten.
void convolution_data(const Tensor& g, const Tensor& w, const Slide& slide, Tensor& dx);
// dw from g and x. dw is contiguous and overwritten.
void convolution_weights(const Tensor& g, const Tensor& x, const Slide& slide, Tensor& dw);

// The same by copying patches into a matrix, for the dtypes that oneDNN does not have. All tensors
// contiguous; no bias.
void patch_convolution(const Tensor& x, const Tensor& w, const Slide& slide, Tensor& out);
void patch_convolution_data(const Tensor& g, const Tensor& w, const Slide& slide, Tensor& dx);
void patch_convolution_weights(const Tensor& g, const Tensor& x, const Slide& slide, Tensor& dw);

}  // namespace tt::cpu
