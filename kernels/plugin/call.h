// Calls of a device library's kernels.
#pragma once

#include "engine/dispatch/dispatcher.h"
#include "engine/tensor/tensor.h"
#include "kernels/plugin/library.h"

namespace tt::plugin {

// Whether the arguments and results of a call are what a kernel accepts: on one device, or numbers; of its dtypes; and
// for an elementwise kernel of one dtype.
bool accepts(const TeletensorDeviceOperator& kernel, const Call& call);
// Runs a kernel that accepts the call, whose outputs exist. Returns false if it does not support the call. Throws Error
// if it fails.
bool run_kernel(DeviceLibrary& library, const TeletensorDeviceOperator& kernel, const Call& call);
// Runs the library's kernel for `assign`, which exists, on two tensors of one device; broadcasts `source`. Returns
// false if it does not support them.
bool run_assign(const Tensor& target, const Tensor& source);

}  // namespace tt::plugin
