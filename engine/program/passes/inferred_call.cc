#include "engine/program/passes/inferred_call.h"

#include <vector>

#include "engine/schema/default_float.h"
#include "engine/schema/error.h"

namespace tt {

bool has_result(const TensorMeta& expected, const Op& op, Args args, uint8_t flags, const ProgramTypes& types) {
  Instruction call;
  call.flags = flags;
  const DefaultFloat restored;
  DefaultFloat::set(call.default_float());
  std::vector<Arg> tensors(args.begin(), args.end());
  for (Arg& arg : tensors) {
    if (arg.kind == Arg::Kind::kSlots) return false;
    if (arg.kind == Arg::Kind::kSlot) arg = Arg(&types.of(arg.slot));
  }
  for (size_t i = tensors.size(); i < op.params.size(); ++i) tensors.push_back(op.params[i].default_value);
  try {
    op.check_args(tensors);
    Inference inferred;
    infer(op, tensors, (flags & Instruction::kGrad) != 0, &inferred);
    const TensorMeta& meta = inferred.outputs[0];
    return meta.sizes == expected.sizes && meta.strides == expected.strides && meta.dtype == expected.dtype &&
           meta.device == expected.device;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace tt
