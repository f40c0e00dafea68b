#include "engine/program/passes/recompute.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/program/passes/renamed_args.h"
#include "engine/program/passes/stateful.h"

namespace tt {
namespace {

constexpr uint8_t kNone = 0;

uint8_t mark_of(const Instruction& instruction) { return instruction.flags & Instruction::kRecompute; }

class Recomputation {
 public:
  Recomputation(std::vector<bool> is_backward, const Program& program)
      : is_backward_(std::move(is_backward)), program_(program), instructions_(program.instructions()) {
    region_of_.resize(instructions_.size());
    size_t region = 0;
    for (size_t i = 0; i < instructions_.size(); ++i) {
      const uint8_t mark = is_backward_[i] ? kNone : mark_of(instructions_[i]);
      if (i == 0 || mark != last_mark_) ++region;
      last_mark_ = mark;
      region_of_[i] = mark == kNone ? 0 : region;
      for (Slot slot : instructions_[i].results) {
        definitions_[slot] = i;
        last_ = std::max(last_, slot);
      }
      for (const Arg& arg : instructions_[i].args) {
        for (Slot slot : names_in(arg)) {
          last_ = std::max(last_, slot);
          if (!is_backward_[i] && is_defined_elsewhere(slot, i)) kept_.insert(slot);
        }
      }
    }
    kept_.insert(program.outputs().begin(), program.outputs().end());
  }

  // Nothing if there would be too many names.
  bool run(Program* changed) {
    for (size_t i = 0; i < instructions_.size(); ++i) {
      if (is_backward_[i]) {
        for (const Arg& arg : instructions_[i].args) {
          for (Slot slot : names_in(arg)) compute_again(slot, changed);
        }
      }
      append_renamed(
          instructions_[i], [&](Slot slot) { return is_backward_[i] ? name_of(slot) : slot; }, changed);
    }
    changed->set_outputs(program_.outputs());
    return last_ <= Program::kMaxNames;
  }

 private:
  // Whether another region's call, or one of none, has computed the value that instruction `i` reads.
  bool is_defined_elsewhere(Slot slot, size_t i) const {
    const auto found = definitions_.find(slot);
    return found != definitions_.end() && region_of_[found->second] != 0 && region_of_[found->second] != region_of_[i];
  }

  bool is_recomputed(Slot slot) const {
    const auto found = definitions_.find(slot);
    return found != definitions_.end() && region_of_[found->second] != 0 && !kept_.contains(slot) &&
           !is_stateful(instructions_[found->second]);
  }

  Slot name_of(Slot slot) const {
    const auto found = again_.find(slot);
    return found == again_.end() ? slot : found->second;
  }

  // Appends the calls that compute the value, and what they need, in their order.
  void compute_again(Slot wanted, Program* changed) {
    if (!is_recomputed(wanted) || again_.contains(wanted)) return;
    std::vector<size_t> needed;
    absl::flat_hash_set<size_t> found;
    std::vector<Slot> left = {wanted};
    while (!left.empty()) {
      const Slot slot = left.back();
      left.pop_back();
      if (!is_recomputed(slot) || again_.contains(slot)) continue;
      const size_t i = definitions_.at(slot);
      if (!found.insert(i).second) continue;
      needed.push_back(i);
      for (const Arg& arg : instructions_[i].args) {
        for (Slot read : names_in(arg)) left.push_back(read);
      }
    }
    std::sort(needed.begin(), needed.end());
    for (size_t i : needed) {
      const auto is_new = [&](Slot slot) {
        const auto& results = instructions_[i].results;
        return std::find(results.begin(), results.end(), slot) != results.end();
      };
      append_renamed(
          instructions_[i], [&](Slot slot) { return is_new(slot) ? again_[slot] = ++last_ : name_of(slot); }, changed);
      changed->mutable_instructions().back().flags &= static_cast<uint8_t>(~Instruction::kRecompute);
    }
  }

  const std::vector<bool> is_backward_;
  const Program& program_;
  const std::vector<Instruction>& instructions_;
  std::vector<size_t> region_of_;  // by instruction; 0: in none
  absl::flat_hash_map<Slot, size_t> definitions_;
  absl::flat_hash_set<Slot> kept_;
  absl::flat_hash_map<Slot, Slot> again_;  // by name: the name of the value that is computed again
  Slot last_ = 0;
  uint8_t last_mark_ = kNone;
};

}  // namespace

void remove_marks(Program* program) {
  for (Instruction& instruction : program->mutable_instructions()) {
    instruction.flags &= static_cast<uint8_t>(~Instruction::kRecompute);
  }
}

void recompute(std::vector<bool> is_backward, Program* program) {
  const auto& instructions = program->instructions();
  if (std::none_of(instructions.begin(), instructions.end(), mark_of)) return;
  Program changed;
  if (Recomputation(std::move(is_backward), *program).run(&changed)) *program = std::move(changed);
}

}  // namespace tt
