// CUDA implementation of selections (kernels/common/index/selection.h).
#pragma once

#include "kernels/common/index/selection.h"
#include "kernels/cuda/launch/device_error.h"

namespace tt::cuda {

extern const SelectionKernels kSelectionKernels;

// Returns the offsets, with `strides`, of the non-zero elements of `mask`, in row-major order. Waits for their number.
Tensor offsets_of_true(const Tensor& mask, SizesView strides);
// Returns the value of an int64 tensor with one element. Waits for the device.
int64_t value_of(const Tensor& t);
// IndexError "index out of range in self, got 7 for dimension 0 with size 5".
Error index_out_of_range_in_self(const DeviceErrorCell& cell);

}  // namespace tt::cuda
