// CUDA's share of selections (kernels/common/index/selection.h).
#pragma once

#include "kernels/common/index/selection.h"
#include "kernels/cuda/launch/fault.h"

namespace tt::cuda {

extern const SelectionKernels kSelectionKernels;

// The offsets, over `strides`, of mask's elements that are not 0, in row-major order. Waits for their number.
Tensor offsets_of_true(const Tensor& mask, SizesView strides);
// An int64 tensor's one element. Waits for the device.
int64_t value_of(const Tensor& t);
// IndexError "index out of range in self, got 7 for dimension 0 with size 5".
Error index_out_of_self(const FaultCell& cell);

}  // namespace tt::cuda
