// The gradients of Fourier transforms.
#pragma once

#include "autograd/formulas/formulas.h"

namespace tt::autograd::formulas {

Tensor fft_r2c_grad(const Tensor& g, SizesView sizes, SizesView dim, double scale);
Tensor fft_c2r_grad(const Tensor& g, SizesView sizes, SizesView dim, double scale);

}  // namespace tt::autograd::formulas
