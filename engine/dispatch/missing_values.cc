#include "engine/dispatch/missing_values.h"

#include "engine/schema/error.h"

namespace tt {

void MissingValues::check_arguments(const Call& call) {
  const auto check_one = [&](const TensorMeta* t) {
    if (t == nullptr || t->is_number || t->device.type == DeviceType::kMeta) return;
    const Storage* const storage = static_cast<const TensorImpl*>(t)->storage.get();
    check(storage == nullptr || storage->device().type != DeviceType::kMeta, "[", call.op->name,
          "] expected arguments with values, got a result that is computed later: ", describe(*t));
  };
  for (const Arg& arg : call.args) {
    if (arg.kind == Arg::Kind::kTensor) check_one(arg.tensor);
    if (arg.kind != Arg::Kind::kTensors) continue;
    for (const TensorMeta* t : arg.list()) check_one(t);
  }
  for (const Tensor& target : call.outputs) check_one(target.get());
}

}  // namespace tt
