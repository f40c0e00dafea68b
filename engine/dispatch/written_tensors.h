// Visits the tensors that a call writes: its out tensors, and the arguments that its operator declares as written.
#pragma once

#include "engine/dispatch/dispatcher.h"

namespace tt {

// Calls `visit` with each tensor that is defined and has a storage. A tensor may be visited more than once.
template <typename Visit>
void for_each_written(const Call& call, Visit visit) {
  const auto visit_defined = [&](const Tensor& tensor) {
    if (tensor && tensor->storage) visit(tensor);
  };
  if (call.into) {
    for (const Tensor& target : call.outputs) visit_defined(target);
  }
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (!call.op->params[i].written) continue;
    const Arg& arg = call.args[i];
    if (arg.kind == Arg::Kind::kTensor) visit_defined(call.tensor(static_cast<int>(i)));
    if (arg.kind != Arg::Kind::kTensors) continue;
    for (const TensorMeta* t : arg.list()) {
      if (t) visit_defined(Tensor::from(t));
    }
  }
}

}  // namespace tt
