#include "engine/program/passes/leading_values.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/program/passes/renamed_args.h"
#include "engine/program/passes/writes.h"
#include "engine/schema/op_ids.h"

namespace tt {

LeadingValues::LeadingValues(const Program& program, size_t inputs, size_t at_least)
    : program_(program), inputs_(inputs) {
  absl::flat_hash_set<Slot> results;
  bool has_later = false;
  for (const Instruction& instruction : program.instructions()) {
    const bool is_detach = instruction.op->id == op_id::kDetach && !instruction.args.empty() &&
                           instruction.args[0].kind == Arg::Kind::kSlot && results.contains(instruction.args[0].slot);
    const bool leads = leads_.size() < at_least || (!writes_in_place(instruction) && (!has_later || is_detach));
    leads_.push_back(leads);
    has_later |= !leads;
    if (leads) results.insert(instruction.results.begin(), instruction.results.end());
  }
  const auto keep = [&](Slot slot) {
    if (results.erase(slot) > 0) outputs_.push_back(slot);
  };
  for (Slot slot : program.outputs()) keep(slot);
  for (size_t i = 0; i < leads_.size(); ++i) {
    if (leads_[i]) continue;
    const Instruction& instruction = program.instructions()[i];
    for (const Arg& arg : instruction.args) {
      for (Slot slot : names_in(arg)) keep(slot);
    }
    for (Slot slot : instruction.results) keep(slot);
  }
}

Program LeadingValues::program() const {
  Program leading = program_;
  std::vector<Instruction> instructions;
  for (size_t i = 0; i < leads_.size(); ++i) {
    if (leads_[i]) instructions.push_back(leading.instructions()[i]);
  }
  leading.mutable_instructions() = std::move(instructions);
  leading.set_outputs(outputs_);
  remove_unused(&leading);
  return leading;
}

std::optional<Program> LeadingValues::joined(Program leading) const {
  absl::flat_hash_map<Slot, Slot> names;
  for (size_t i = 0; i < outputs_.size(); ++i) names[outputs_[i]] = leading.outputs()[i];
  Slot last = inputs_;
  for (const Instruction& instruction : leading.instructions()) {
    for (Slot slot : instruction.results) last = std::max(last, slot);
  }
  const auto name_of = [&](Slot slot) {
    if (slot <= inputs_) return slot;
    const auto [at, is_new] = names.try_emplace(slot, last + 1);
    last += is_new;
    return at->second;
  };
  for (size_t i = 0; i < leads_.size(); ++i) {
    if (leads_[i]) continue;
    append_renamed(program_.instructions()[i], name_of, &leading);
  }
  if (last > Program::kMaxNames) return std::nullopt;
  std::vector<Slot> outputs;
  for (Slot slot : program_.outputs()) outputs.push_back(name_of(slot));
  leading.set_outputs(outputs);
  remove_unused(&leading);
  return leading;
}

}  // namespace tt
