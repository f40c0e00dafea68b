#include "engine/partial_writes.h"

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"

namespace tt {
namespace {

thread_local absl::InlinedVector<Ref<Storage>, 4> written;

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

void PartialWrites::poison(SlotTable& slots, const std::shared_ptr<const Poison>& poison) {
  if (written.empty()) return;
  absl::flat_hash_set<const Storage*> storages;
  for (const Ref<Storage>& storage : written) storages.insert(storage.get());
  slots.poison_where([&](const Tensor& tensor) { return storages.contains(tensor->storage.get()); }, poison);
  written.clear();
}

void PartialWrites::clear() { written.clear(); }

}  // namespace tt
