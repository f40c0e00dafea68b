// The CPU's share of selections (kernels/common/index/selection.h).
#pragma once

#include "kernels/common/index/selection.h"

namespace tt::cpu {

extern const SelectionKernels kSelectionKernels;

// The offsets, over `strides`, of mask's elements that are not 0, in row-major order.
Tensor offsets_of_true(const Tensor& mask, SizesView strides);

}  // namespace tt::cpu
