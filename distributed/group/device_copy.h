// Tensors on GPUs: copies from and to the host's memory, and checks of their values before a collective.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/dispatch/ops.h"
#include "engine/program/poison.h"
#include "engine/session/context.h"
#include "engine/tensor/tensor.h"

namespace tt::distributed {

// Returns the tensor, or a copy of it on a device.
inline Tensor on_device(const Tensor& tensor, Device device) {
  return tensor.device() == device ? tensor : ops::to_device(tensor, device);
}

// Throws Poisoned if the value of a tensor on a GPU is an error, which other ranks must get instead of the value. Waits
// for the GPU if a tensor depends on a check that the GPU has not completed, such as that of an index.
inline void check_values(const Tensors& list, Device device) {
  Context& context = Context::current();
  const auto is_pending = [](const Tensor& t) { return !t->storage->pending_errors.empty(); };
  if (!context.has_async_errors() || std::none_of(list.begin(), list.end(), is_pending)) return;
  context.stream(device).synchronize();
  for (const Tensor& t : list) {
    std::shared_ptr<const Poison> poison = context.async_errors().find_error(t->storage->pending_errors);
    if (poison) throw Poisoned(std::move(poison));
  }
}

}  // namespace tt::distributed
