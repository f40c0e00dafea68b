#include "engine/dispatch/boxed.h"

namespace tt::boxing {
namespace {

// Copies a zero-dim CPU tensor to the device of the call, which cannot read host memory.
Tensor moved(const Tensor& t, Device device) {
  Tensor there = empty({}, t.dtype(), device);
  copy_into(there, t);
  return there;
}

}  // namespace

Tensor to_tensor(const Call& call, const Arg& arg) {
  if (arg.is_none()) return Tensor();
  const Scalar value = arg.is_number() ? arg.scalar() : Scalar();
  Tensor t = arg.is_number() ? scalar_tensor(value, value.dtype(), call.inferred.device) : Tensor::from(arg.tensor);
  const Device device = call.inferred.device;
  const bool stays = device.type != DeviceType::kCUDA || t.device() == device || t.dim() > 0;
  return stays ? t : moved(t, device);
}

}  // namespace tt::boxing
