#include "engine/dispatch/operand.h"

namespace tt::ops {

Tensors call(uint16_t op, Args args, absl::Span<const Tensor> into) {
  Call call;
  call.op = find_op(op);
  call.args = args;
  call.into = !into.empty();
  call.outputs.assign(into.begin(), into.end());
  Dispatcher::instance().dispatch(call);
  return std::move(call.outputs);
}

}  // namespace tt::ops
