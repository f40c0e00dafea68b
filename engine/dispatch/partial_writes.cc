#include "engine/dispatch/partial_writes.h"

#include <utility>

namespace tt {
namespace {

thread_local PartialWrites::Storages written;

void add_tensor(const Tensor& tensor) {
  if (!tensor || !tensor->storage) return;
  tensor->storage->bump_version();
  written.push_back(tensor->storage);
}

}  // namespace

void PartialWrites::add(const Call& call) {
  if (call.into) {
    for (const Tensor& target : call.outputs) add_tensor(target);
  }
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (!call.op->params[i].written) continue;
    const Arg& arg = call.args[i];
    if (arg.kind == Arg::Kind::kTensor) add_tensor(call.tensor(static_cast<int>(i)));
    if (arg.kind != Arg::Kind::kTensors) continue;
    for (const TensorMeta* t : arg.list()) {
      if (t) add_tensor(Tensor::from(t));
    }
  }
}

PartialWrites::Storages PartialWrites::take() { return std::exchange(written, {}); }

}  // namespace tt
