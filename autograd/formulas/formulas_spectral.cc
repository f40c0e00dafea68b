#include "autograd/formulas/formulas_spectral.h"

#include "engine/dispatch/ops.h"

namespace tt::autograd::formulas {

// fft_r2c returns only the first half of the spectrum, so the gradient of the second half is zero.
Tensor fft_r2c_grad(const Tensor& g, SizesView sizes, SizesView dim, double scale) {
  const int64_t last = dim.back(), missing = sizes[last < 0 ? last + sizes.size() : last] - g.size(last);
  Tensor padded = g;
  if (missing > 0) {
    Sizes none = g.sizes();
    none[last < 0 ? last + g.dim() : last] = missing;
    padded = ops::cat({g, ops::zeros(none, g.dtype(), g.device())}, last);
  }
  return ops::real(ops::fft_c2c(padded, dim, scale, false));
}

// Each element represents two elements of the full spectrum, except the first and, if the length is even, the last.
Tensor fft_c2r_grad(const Tensor& g, SizesView sizes, SizesView dim, double scale) {
  const int64_t last = dim.back() < 0 ? dim.back() + g.dim() : dim.back();
  const int64_t half = sizes[last], twice = g.size(last) - half;
  const Tensor spectrum = ops::fft_r2c(g, dim, scale);
  if (twice <= 0) return spectrum;
  Tensors weights{ops::ones(Sizes{1}, g.dtype(), g.device()), ops::full(Sizes{twice}, 2.0, g.dtype(), g.device())};
  if (half - 1 - twice > 0) weights.push_back(ops::ones(Sizes{half - 1 - twice}, g.dtype(), g.device()));
  Sizes shape(g.sizes().size(), 1);
  shape[last] = half;
  return ops::mul(spectrum, ops::reshape(ops::cat(weights, 0), shape));
}

}  // namespace tt::autograd::formulas
