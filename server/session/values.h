// What replies and downloads share: the form of numbers in a reply, and functions on tensors that are sent.
#pragma once

#include <cstddef>

#include "engine/device/devices.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/tensor/tensor.h"

namespace tt::server {

constexpr size_t kNumberBytes = 16;  // per element in v1::Reply::numbers

inline bool on_cpu(const Tensor& tensor) { return tensor.device().type == DeviceType::kCPU; }

inline size_t byte_size(const Tensor& tensor) {
  return static_cast<size_t>(tensor.numel()) * item_size(tensor.dtype());
}

// Returns the tensor with its elements in logical order, on its device.
inline Tensor packed(const Tensor& tensor) {
  if (tensor.is_contiguous()) return tensor;
  Tensor copy = empty(tensor.sizes(), tensor.dtype(), tensor.device());
  copy_into(copy, tensor);
  return copy;
}

}  // namespace tt::server
