// infer(): applies an operator's own rules, then the common ones.
#include "engine/schema/custom_table.h"
#include "engine/schema/error.h"
#include "engine/schema/infer_common.h"
#include "engine/schema/op.h"

namespace tt {

void infer(const Op& op, Args args, bool grad_enabled, Inference* out) {
  out->outputs.clear();
  out->alias = false;
  try {
    const CustomOperator* const custom = is_custom(op.id) ? find_custom_op(op.id) : nullptr;
    if (custom) [[unlikely]]
      custom->infer(args, out);
    else
      op.infer(args, out);
    infer_common(op, args, grad_enabled, out);
    check(ErrorKind::kNotImplemented, !custom || !out->requires_grad || custom->has_gradient(),
          "the operator's library declares no gradient; call it under no_grad() or with detached tensors");
  } catch (Error& e) {
    e.set_op(op.name);
    throw;
  }
}

}  // namespace tt
