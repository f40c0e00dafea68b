#include "engine/dispatch/boxed.h"

namespace tt::boxing {
namespace {

// Copies a zero-dim CPU tensor to the device of the call, which cannot read host memory.
Tensor moved(const Tensor& t, Device device) {
  Tensor there = empty({}, t.dtype(), device);
  copy_into(there, t);
  return there;
}

// A zero-dim tensor with a number, which the device writes: nothing is copied to it. Below autograd, as copy_into().
Tensor number_on(Device device, const Scalar& value) {
  static const Op* const fill = find_op("fill");
  Tensor t = empty({}, value.dtype(), device);
  const Arg args[] = {t.get(), Arg(value)};
  Call call;
  call.op = fill;
  call.args = args;
  call.outputs.push_back(t);
  call.into = true;
  infer(*fill, args, false, &call.inferred);
  call.keys = backend_key(call.inferred.backend);
  Dispatcher::instance().redispatch(call, Key::kAutograd);
  return t;
}

}  // namespace

Tensor to_tensor(const Call& call, const Arg& arg) {
  if (arg.is_none()) return Tensor();
  const Device device = call.inferred.device;
  const bool on_gpu = device.type == DeviceType::kCUDA;
  if (arg.is_number()) {
    const Scalar value = arg.scalar();
    return on_gpu ? number_on(device, value) : scalar_tensor(value, value.dtype(), device);
  }
  const Tensor t = Tensor::from(arg.tensor);
  const bool stays = !on_gpu || t.device() == device || t.dim() > 0;
  return stays ? t : moved(t, device);
}

}  // namespace tt::boxing
