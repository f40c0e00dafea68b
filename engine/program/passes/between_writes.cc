#include "engine/program/passes/between_writes.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/device/cancellation.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/program/passes/renamed_args.h"
#include "engine/program/passes/writes.h"
#include "engine/schema/program_types.h"

namespace tt {
namespace {

class Parts {
 public:
  Parts(const Program& program, absl::Span<const TensorMeta* const> metas, bool grad_enabled)
      : program_(program), types_(program, metas, grad_enabled), last_(metas.size()) {
    const auto& instructions = program.instructions();
    for (size_t i = 0; i < instructions.size(); ++i) {
      for (const Arg& arg : instructions[i].args) {
        for (Slot slot : names_in(arg)) last_use_[slot] = i;
      }
      for (Slot slot : instructions[i].results) last_use_[slot] = i;
    }
    for (Slot slot : program.outputs()) last_use_[slot] = instructions.size();
    for (Slot slot = 1; slot <= metas.size(); ++slot) names_[slot] = slot;
  }

  // Instructions [begin, end), which write nothing, as the pass changes them.
  void add_part(size_t begin, size_t end, PartPass pass) {
    Program part;
    std::vector<Slot> inputs, outputs;
    std::vector<const TensorMeta*> metas;
    absl::flat_hash_map<Slot, Slot> local;
    absl::flat_hash_set<Slot> made;
    for (size_t i = begin; i < end; ++i) {
      const Instruction& instruction = program_.instructions()[i];
      made.insert(instruction.results.begin(), instruction.results.end());
      for (const Arg& arg : instruction.args) {
        for (Slot slot : names_in(arg)) {
          if (slot == 0 || made.contains(slot) || !local.try_emplace(slot, inputs.size() + 1).second) continue;
          inputs.push_back(slot);
          metas.push_back(&types_.of(slot));
        }
      }
    }
    for (size_t i = begin; i < end; ++i) {
      const Instruction& instruction = program_.instructions()[i];
      append_renamed(
          instruction, [&](Slot slot) { return local.try_emplace(slot, local.size() + 1).first->second; }, &part);
      for (Slot slot : instruction.results) {
        if (last_use_.at(slot) >= end) outputs.push_back(slot);
      }
    }
    std::vector<Slot> local_outputs;
    local_outputs.reserve(outputs.size());
    for (Slot slot : outputs) local_outputs.push_back(local.at(slot));
    part.set_outputs(local_outputs);
    remove_unused(&part);
    const Program changed = pass(std::move(part), metas);
    absl::flat_hash_map<Slot, Slot> global;
    for (size_t i = 0; i < inputs.size(); ++i) global[i + 1] = names_.at(inputs[i]);
    for (const Instruction& instruction : changed.instructions()) {
      append_renamed(
          instruction, [&](Slot slot) { return name_in(&global, slot); }, &result_);
    }
    for (size_t i = 0; i < outputs.size(); ++i) names_[outputs[i]] = global.at(changed.outputs()[i]);
  }

  // An instruction as it is.
  void add(const Instruction& instruction) {
    append_renamed(
        instruction, [&](Slot slot) { return name_in(&names_, slot); }, &result_);
  }

  // Nothing if there would be too many names.
  std::optional<Program> finish() {
    if (last_ > Program::kMaxNames) return std::nullopt;
    std::vector<Slot> outputs;
    for (Slot slot : program_.outputs()) outputs.push_back(names_.at(slot));
    result_.set_outputs(outputs);
    remove_unused(&result_);
    return std::move(result_);
  }

 private:
  // The name in result_ that `known` has for a value, or a new one.
  Slot name_in(absl::flat_hash_map<Slot, Slot>* known, Slot slot) {
    const auto [at, is_new] = known->try_emplace(slot, last_ + 1);
    last_ += is_new;
    return at->second;
  }

  const Program& program_;
  const ProgramTypes types_;
  Program result_;
  Slot last_;
  absl::flat_hash_map<Slot, size_t> last_use_;  // by name: the instruction, or their number for an output
  absl::flat_hash_map<Slot, Slot> names_;       // in result_
};

}  // namespace

Program map_between_writes(const Program& program, absl::Span<const TensorMeta* const> metas, bool grad_enabled,
                           PartPass pass) {
  if (!writes_in_place(program)) return pass(program, metas);
  Parts parts(program, metas, grad_enabled);
  const auto& instructions = program.instructions();
  for (size_t begin = 0; begin < instructions.size();) {
    size_t end = begin;
    while (end < instructions.size() && !writes_in_place(instructions[end])) ++end;
    if (end - begin > 1) {
      check_cancelled();
      parts.add_part(begin, end, pass);
    } else {
      parts.add(instructions[begin]);
      end = begin + 1;
    }
    begin = end;
  }
  return parts.finish().value_or(program);
}

}  // namespace tt
