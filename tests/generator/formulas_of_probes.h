// What the probes' gradients call: declarations only, read by the generator, compiled by nobody.
#pragma once

namespace tt::autograd::formulas {

Tensor spread(const Tensor& low, const Tensor& high, const Tensor& least, SizesView sizes, int64_t dim);
Tensor padded(const Tensor& rows, SizesView sizes);

}  // namespace tt::autograd::formulas
