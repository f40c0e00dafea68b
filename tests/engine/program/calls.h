// Programs written as calls of named operators, and the metadata of their inputs, for tests of passes.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "engine/program/passes/remove_unused.h"
#include "engine/schema/op.h"
#include "engine/schema/program.h"
#include "engine/schema/program_types.h"

namespace tt::testing {

inline Arg slot(Slot name) { return slot_arg(name); }

// The names must outlive the argument.
inline Arg slots(absl::Span<const Slot> names) {
  Arg arg;
  arg.kind = Arg::Kind::kSlots;
  arg.size = static_cast<uint32_t>(names.size());
  arg.slots = names.data();
  return arg;
}

// Adds `results` = op(args).
inline Instruction& add(Program* program, std::string_view op, std::vector<Arg> args, std::vector<Slot> results,
                        uint8_t flags = Instruction::kGrad) {
  Instruction& instruction = program->add(*find_op(op), args, results);
  instruction.flags = flags;
  return instruction;
}

// The text of the Program without the calls that nothing reads.
inline std::string without_unused(Program program) {
  remove_unused(&program);
  return to_string(program);
}

// The metadata of contiguous float32 inputs.
class InputMetas {
 public:
  template <std::same_as<Sizes>... Inputs>
  explicit InputMetas(const Inputs&... sizes) : metas_(sizeof...(Inputs)) {
    size_t i = 0;
    ((metas_[i].sizes = sizes, metas_[i++].strides = contiguous_strides(sizes)), ...);
    for (TensorMeta& meta : metas_) pointers_.push_back(&meta);
  }
  absl::Span<const TensorMeta* const> metas() const { return pointers_; }
  size_t size() const { return pointers_.size(); }
  ProgramTypes types(const Program& program) const { return ProgramTypes(program, pointers_, /*grad_enabled=*/false); }
  TensorMeta& meta(size_t i) { return metas_[i]; }

 private:
  std::vector<TensorMeta> metas_;
  std::vector<const TensorMeta*> pointers_;
};

}  // namespace tt::testing
