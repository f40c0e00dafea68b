#include "engine/boxed.h"

namespace tt::boxing {

Tensor to_tensor(const Call& call, const Arg& arg) {
  if (!arg.is_number()) return arg.is_none() ? Tensor() : Tensor::from(arg.tensor);
  Scalar value = arg.scalar();
  return scalar_tensor(value, value.dtype(), call.inferred.device);
}

}  // namespace tt::boxing
