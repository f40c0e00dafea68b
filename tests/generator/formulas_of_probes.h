// Functions called by the probes' gradients: declarations read by the generator, never compiled.
#pragma once

namespace tt::autograd::formulas {

Tensor spread(const Tensor& low, const Tensor& high, const Tensor& least, SizesView sizes, int64_t dim);
Tensor padded(const Tensor& rows, SizesView sizes);

}  // namespace tt::autograd::formulas
