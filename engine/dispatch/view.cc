#include "engine/dispatch/view.h"

#include "engine/schema/error.h"

namespace tt {
namespace {

// Returns outputs that alias `base`. If the view is differentiable, also sets the member `base` of the outputs.
Tensors alias_all(const Call& call, const Tensor& base) {
  Tensors views;
  for (const TensorMeta& meta : call.inferred.outputs) {
    views.push_back(alias(base, meta));
    if (call.op->differentiable) views.back()->set_base(base->base ? base->base : Ref<TensorImpl>(base.get()));
  }
  return views;
}

// Copies the first argument's elements in row-major order to new memory of the inferred shape.
Tensors copy_all(const Call& call, const Tensor& base) {
  Tensor copy = allocate(call.inferred.outputs[0]);
  Geometry as_base{base.sizes(), contiguous_strides(base.sizes()), 0, true};
  copy_into(view_of(copy, as_base), base);
  return {copy};
}

}  // namespace

void view_kernel(Call& call) {
  Tensor base = call.tensor(0);
  Tensors results;
  try {
    // An empty list of views (unbind of a dimension of size 0) needs no copy.
    const bool aliases = call.inferred.alias || call.inferred.outputs.empty();
    results = aliases ? alias_all(call, base) : copy_all(call, base);
  } catch (Error& e) {
    e.set_op(call.op->name);
    throw;
  }
  if (!call.into) {
    call.outputs = std::move(results);
    return;
  }
  for (size_t i = 0; i < results.size(); ++i) copy_into(call.outputs[i], results[i]);
}

}  // namespace tt
