// ResolvedArgs: an instruction's arguments with names replaced by tensors.
#pragma once

#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "engine/program/slot_table.h"
#include "engine/schema/error.h"
#include "engine/schema/program.h"

namespace tt {

// Throws Error with the operator's name.
[[noreturn]] inline void refuse_instruction(ErrorKind kind, const Op& op, std::string message) {
  Error error(kind, std::move(message));
  error.set_op(op.name);
  throw error;
}

// Stored inline for common arities. The slot table keeps the tensors alive: it must not change while the operation
// runs. Used by one thread.
class ResolvedArgs {
 public:
  // Throws Error if a slot is not in use or a required argument is missing.
  ResolvedArgs(const Instruction& instruction, const SlotTable& slots) : op_(*instruction.op), slots_(slots) {
    Args given = instruction.args;
    if (given.size() > op_.params.size()) {
      refuse_instruction(ErrorKind::kType, op_,
                         absl::StrCat("takes ", op_.params.size(), " arguments, got ", given.size()));
    }
    size_t entries = 0;
    for (const Arg& arg : given) entries += arg.kind == Arg::Kind::kSlots ? arg.size : 0;
    entries_.reserve(entries);  // spans into entries_ must stay valid
    args_.reserve(op_.params.size());
    for (const Arg& arg : given) args_.push_back(resolve(arg));
    for (size_t i = given.size(); i < op_.params.size(); ++i) args_.push_back(op_.params[i].default_value);
  }
  Args args() const { return args_; }
  // The poison of the first poisoned argument, or null.
  const PoisonRef& poison() const { return poison_; }

 private:
  Arg resolve(const Arg& arg) {
    if (arg.kind == Arg::Kind::kSlot) return Arg(find(arg.slot));
    if (arg.kind != Arg::Kind::kSlots) return arg;
    const TensorMeta* const* first = entries_.data() + entries_.size();
    for (uint32_t i = 0; i < arg.size; ++i) entries_.push_back(arg.slots[i] ? find(arg.slots[i]) : nullptr);
    return Arg(absl::Span<const TensorMeta* const>(first, arg.size));
  }
  const TensorMeta* find(Slot slot) {
    const SlotValue* value = slots_.find(slot);
    if (!value) [[unlikely]]
      refuse_instruction(ErrorKind::kValue, op_, absl::StrCat("tensor ", slot, " does not exist"));
    if (value->poison && !poison_) [[unlikely]]
      poison_ = value->poison;
    return value->tensor.get();
  }

  const Op& op_;
  const SlotTable& slots_;
  absl::InlinedVector<Arg, 12> args_;
  absl::InlinedVector<const TensorMeta*, 8> entries_;
  PoisonRef poison_;
};

}  // namespace tt
