#include "engine/dispatch/autocast.h"

#include "engine/dispatch/call_scope.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/schema/autocast_result.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

Tensor converted(const Tensor& t, DType dtype) {
  static const Op* const to_dtype = find_op(op_id::kToDtype);
  const Arg args[] = {t.get(), dtype};
  Call call;
  call.op = to_dtype;
  call.args = args;
  Dispatcher::instance().dispatch(call);
  return std::move(call.outputs[0]);
}

}  // namespace

bool Autocast::keeps(const Tensor& t, DType dtype) const {
  return state.cache && !is_capturing && dtype == state.dtype(t.device().type) && t.dtype() == DType::kFloat32 &&
         t.requires_grad() && t->is_leaf() && !t->base;
}

Tensor Autocast::cast(const Tensor& t, DType dtype) {
  if (!keeps(t, dtype)) return converted(t, dtype);
  const bool records = CallScope::current().grad_enabled;
  const auto kept = casts_.find(t.get());
  // A cast made without grad mode has no history, so a later recorded call would lose the gradient.
  if (kept != casts_.end() && kept->second.version == t.version() && kept->second.cast.dtype() == dtype &&
      kept->second.cast.requires_grad() == records) {
    return kept->second.cast;
  }
  Tensor cast = converted(t, dtype);
  casts_.insert_or_assign(t.get(), Kept{t, cast, t.version()});
  return cast;
}

void autocast(Call& call) {
  Autocast& settings = CallScope::current().autocast;
  const AutocastRule rule = autocast_rule(*call.op, call.args, settings.state);
  absl::InlinedVector<Tensor, 4> casts;  // keeps them alive during the call
  const AutocastArgs changed(rule, call.args, [&](const TensorMeta* t) {
    return casts.emplace_back(settings.cast(Tensor::from(t), *rule.dtype)).get();
  });
  const Args given = call.args;
  call.args = changed.args();
  Dispatcher::instance().dispatch(call);
  call.args = given;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const std::optional<DType> dtype = autocast_result(*call.op, given, settings.state, call.outputs[i].dtype());
    if (!dtype) continue;
    call.outputs[i] = converted(call.outputs[i], *dtype);
    call.inferred.outputs[i].dtype = *dtype;
  }
}

}  // namespace tt
