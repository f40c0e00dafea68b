#include "python/bindings/tensor/stand_in.h"

namespace tt::python {
namespace {

StandIn* first_in(const Arg& arg) {
  if (arg.kind == Arg::Kind::kTensor) return stand_in_of(arg.tensor);
  if (arg.kind != Arg::Kind::kTensors) return nullptr;
  for (const TensorMeta* tensor : arg.list()) {
    if (StandIn* found = stand_in_of(tensor)) return found;
  }
  return nullptr;
}

}  // namespace

bool stand_ins_exist = false;

StandIn* stand_in_of(const TensorMeta* tensor) {
  if (!tensor || !stand_ins_exist) return nullptr;
  return static_cast<StandIn*>(static_cast<const client::Handle*>(tensor)->stands_for.get());
}

std::optional<client::Tensors> call_stand_in(const Op& op, Args args, absl::Span<const client::Tensor> into) {
  for (const Arg& arg : args) {
    if (StandIn* found = first_in(arg)) return found->call(op, args, into);
  }
  for (const client::Tensor& tensor : into) {
    if (StandIn* found = stand_in_of(tensor.get())) return found->call(op, args, into);
  }
  return std::nullopt;
}

void check_has_values(const TensorMeta* tensor, std::string_view what) {
  if (const StandIn* found = stand_in_of(tensor)) found->check_has_values(what);
}

}  // namespace tt::python
