// Copies between the devices of tensors and the host's memory, in which collectives run.
#pragma once

#include "engine/dispatch/ops.h"
#include "engine/tensor/tensor.h"

namespace tt::distributed {

// Returns the tensor, or a copy of it on a device.
inline Tensor on_device(const Tensor& tensor, Device device) {
  return tensor.device() == device ? tensor : ops::to_device(tensor, device);
}

}  // namespace tt::distributed
