// The CPU's functions for selections (kernels/common/index/selection.h).
#pragma once

#include "kernels/common/index/selection.h"

namespace tt::cpu {

extern const SelectionKernels kSelectionKernels;

// Offsets, with `strides`, of the nonzero elements of `mask`, in row-major order.
Tensor offsets_of_true(const Tensor& mask, SizesView strides);

}  // namespace tt::cpu
