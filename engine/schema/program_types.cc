#include "engine/schema/program_types.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/schema/default_float.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

// Names are small numbers, which index metas_.
size_t count_names(const Program& program, size_t inputs) {
  Slot largest = inputs;
  for (const Instruction& instruction : program.instructions()) {
    for (Slot slot : instruction.results) largest = std::max(largest, slot);
  }
  check(ErrorKind::kValue, largest <= Program::kMaxNames, "a Program has at most ", Program::kMaxNames,
        " names, got the name ", largest);
  return largest + 1;
}

// The place of `captures` among the arguments of `backward`.
constexpr size_t kCaptures = 2;
// That of whether the pass is recorded.
constexpr size_t kCreateGraph = 5;

}  // namespace

void infer_in_program(const Op& op, Args args, bool grad_enabled, Inference* inferred) {
  if (op.id == op_id::kBackward) {
    for (const TensorMeta* capture : args[kCaptures].list()) {
      TensorMeta& gradient = inferred->outputs.emplace_back();
      gradient.dtype = capture->dtype;
      gradient.device = capture->device;
      gradient.sizes = capture->sizes;
      gradient.strides = contiguous_strides(capture->sizes);
      gradient.requires_grad =
          grad_enabled && args.size() > kCreateGraph && args[kCreateGraph].to_bool() && has_gradients(capture->dtype);
    }
    return;
  }
  check(ErrorKind::kNotImplemented, !op.is_dynamic, "[", op.name,
        "] the sizes of its results depend on values, which are not known in a Program");
  infer(op, args, grad_enabled, inferred);
}

ProgramTypes::ProgramTypes(const Program& program, absl::Span<const TensorMeta* const> inputs, bool grad_enabled,
                           InferCall infer_call)
    : metas_(count_names(program, inputs.size())), known_(metas_.size()), bases_(metas_.size()) {
  for (size_t i = 0; i < inputs.size(); ++i) set(i + 1, *inputs[i]);
  for (const Instruction& instruction : program.instructions()) add(instruction, grad_enabled, infer_call);
}

ProgramTypes::ProgramTypes(absl::Span<const TensorMeta* const> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) set(i + 1, *inputs[i]);
}

void ProgramTypes::set(Slot slot, TensorMeta meta) {
  if (slot >= metas_.size()) {
    check(ErrorKind::kValue, slot <= Program::kMaxNames, "a Program has at most ", Program::kMaxNames,
          " names, got the name ", slot);
    metas_.resize(slot + 1);
    known_.resize(slot + 1);
    bases_.resize(slot + 1);
  }
  metas_[slot] = std::move(meta);
  known_[slot] = true;
  bases_[slot] = 0;
}

// A write that is recorded changes the history of the whole tensor.
void ProgramTypes::require_grad(Slot slot) {
  if (metas_[slot].requires_grad) return;
  const auto require = [&](Slot name) { metas_[name].requires_grad = has_gradients(metas_[name].dtype); };
  const Slot base = bases_[slot] == 0 ? slot : bases_[slot];
  require(slot);
  require(base);
  const auto views = constant_views_.find(base);
  if (views == constant_views_.end()) return;
  for (Slot view : views->second) {
    if (bases_[view] == base) require(view);
  }
  constant_views_.erase(views);
}

const TensorMeta* ProgramTypes::find(Slot slot) const {
  check(ErrorKind::kValue, contains(slot), "expected a name that the Program has defined, got ", slot);
  return &metas_[slot];
}

void ProgramTypes::add(const Instruction& instruction, bool grad_enabled, InferCall infer_call) {
  const Op& op = *instruction.op;
  size_t entries = 0;
  for (const Arg& arg : instruction.args) entries += arg.kind == Arg::Kind::kSlots ? arg.size : 0;
  std::vector<const TensorMeta*> list;
  list.reserve(entries);  // spans into it must stay valid
  absl::InlinedVector<Arg, 12> args(instruction.args.begin(), instruction.args.end());
  for (Arg& arg : args) {
    if (arg.kind == Arg::Kind::kSlot) {
      arg = Arg(find(arg.slot));
    } else if (arg.kind == Arg::Kind::kSlots) {
      const size_t first = list.size();
      for (uint32_t i = 0; i < arg.size; ++i) list.push_back(arg.slots[i] == 0 ? nullptr : find(arg.slots[i]));
      arg = Arg(absl::Span<const TensorMeta* const>(list).subspan(first));
    }
  }
  for (size_t i = args.size(); i < op.params.size(); ++i) args.push_back(op.params[i].default_value);
  op.check_args(args);
  const DefaultFloat default_float(instruction.default_float());
  const bool grad = grad_enabled && (instruction.flags & Instruction::kGrad) != 0 &&
                    (instruction.flags & Instruction::kInference) == 0;
  Inference inferred;
  infer_call(op, args, grad, &inferred);
  check(ErrorKind::kValue, inferred.outputs.size() == instruction.results.size(), "[", op.name, "] expected ",
        inferred.outputs.size(), " result names, got ", instruction.results.size());
  for (size_t i = 0; i < instruction.results.size(); ++i) {
    const Slot slot = instruction.results[i];
    if ((instruction.flags & Instruction::kInto) == 0) {
      set(slot, std::move(inferred.outputs[i]));
      const Arg* const of =
          inferred.alias && op.differentiable && !instruction.args.empty() ? &instruction.args[0] : nullptr;
      if (of != nullptr && of->kind == Arg::Kind::kSlot) {
        bases_[slot] = bases_[of->slot] == 0 ? of->slot : bases_[of->slot];
        if (!metas_[bases_[slot]].requires_grad) constant_views_[bases_[slot]].push_back(slot);
      }
      continue;
    }
    check_out_variant(op, inferred.outputs[i], *find(slot), /*target_is_leaf=*/false, grad);
    if (inferred.outputs[i].requires_grad) require_grad(slot);
  }
  if (op.id == op_id::kRequiresGrad) {
    TensorMeta& leaf = metas_[instruction.args[0].slot];
    leaf.requires_grad = args[1].to_bool() && has_gradients(leaf.dtype);
  }
}

}  // namespace tt
