// Copies between tensors of a device library's devices, the host and other devices, and the kernels of the operators
// that only copy.
#pragma once

#include "engine/dispatch/dispatcher.h"
#include "engine/tensor/tensor.h"

namespace tt::plugin {

// Returns a contiguous copy of `t` on the CPU. Waits for the device.
Tensor fetch(const Tensor& t);
// Broadcasts `host`, a tensor on the CPU, converts it and writes it to `target`.
void store(const Tensor& host, const Tensor& target);
// Broadcasts `source`, converts it and writes it to `target`; either is on a device of a device library. The bytes pass
// through the host unless both are contiguous on one device, or the library has a kernel for `assign`.
void copy(const Tensor& source, const Tensor& target);
// Returns `t` if it is contiguous, else a contiguous copy on its device.
Tensor contiguous(const Tensor& t);

// Kernels of the operators of these names.
void assign(Call& call);
void clone(Call& call);  // also of to_dtype and to_device

}  // namespace tt::plugin
