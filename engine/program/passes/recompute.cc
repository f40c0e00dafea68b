#include "engine/program/passes/recompute.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/device/cancellation.h"
#include "engine/memory/session_charge.h"
#include "engine/program/passes/memory_budget.h"
#include "engine/program/passes/peak_memory.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/program/passes/renamed_args.h"

namespace tt {
namespace {

constexpr uint8_t kNone = 0;
// Of calls that compute something again for values that are kept during the backward part, and then once more. They are
// neither merged nor fused with others.
constexpr uint8_t kTwice = Instruction::kRecompute;

// How often a pass checks for cancellation and charges the session for what it has appended, in calls.
constexpr size_t kCallsPerCharge = 1024;
// A Program that computes values in parts has at most this many times the calls of one that does not.
constexpr size_t kMaxGrowth = 4;

// A Program that is being made, and the charge for its memory.
struct Made {
  Program program;
  HostCharge charge = {};
};

uint8_t mark_of(const Instruction& instruction) { return instruction.flags & Instruction::kRecompute; }

class Recomputation {
 public:
  Recomputation(const std::vector<bool>& is_backward, const Program& program)
      : is_backward_(is_backward),
        program_(program),
        instructions_(program.instructions()),
        is_chosen_(instructions_.size()),
        stays_(instructions_.size()),
        has_constant_values_(instructions_with_constant_values(program)) {
    region_of_.resize(instructions_.size());
    size_t region = 0;
    for (size_t i = 0; i < instructions_.size(); ++i) {
      const uint8_t mark = is_backward_[i] ? kNone : mark_of(instructions_[i]);
      if (i == 0 || mark != last_mark_) ++region;
      last_mark_ = mark;
      region_of_[i] = mark == kNone ? 0 : region;
      for (Slot slot : instructions_[i].results) {
        if ((instructions_[i].flags & Instruction::kInto) == 0) definitions_[slot] = i;
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

  // Whether the results of instruction `i` are computed again if backward reads them.
  bool is_again(size_t i) const {
    const auto& results = instructions_[i].results;
    return std::any_of(results.begin(), results.end(), [this](Slot slot) { return is_recomputed(slot); });
  }
  // Computes the results of these instructions of forward again.
  void choose(const std::vector<size_t>& instructions) {
    for (size_t i : instructions) is_chosen_[i] = true;
  }

  // The results of these instructions are computed again at the start of the backward part, and stay until their last
  // use. If there are any, the values that only they need are dropped, and computed once more when backward reads them.
  void keep_during_backward(const std::vector<size_t>& instructions) {
    for (size_t i : instructions) stays_[i] = true;
    is_in_parts_ = !instructions.empty();
  }

  // Returns false as soon as there are too many names, or more than `max_calls` calls. Throws Error if the session has
  // no memory for the Program, or its work is cancelled.
  bool run(size_t max_calls, Made* made) {
    max_calls_ = max_calls;
    Program* const changed = &made->program;
    for (size_t i = 0; i < instructions_.size(); ++i) {
      if (is_backward_[i]) {
        for (const Arg& arg : instructions_[i].args) {
          for (Slot slot : names_in(arg)) {
            if (!compute_again(slot, made)) return false;
          }
        }
      }
      if (!has_room(made)) return false;
      append_renamed(
          instructions_[i], [&](Slot slot) { return is_backward_[i] ? name_of(slot) : slot; }, changed);
      if (!is_chosen_[i]) continue;
      uint8_t& flags = changed->mutable_instructions().back().flags;
      flags = static_cast<uint8_t>((flags & ~Instruction::kRecompute) | Instruction::kRecomputeOdd);
    }
    changed->set_outputs(program_.outputs());
    return true;
  }

 private:
  // Whether another region's call, or one of none, has computed the value that instruction `i` reads.
  bool is_defined_elsewhere(Slot slot, size_t i) const {
    const auto found = definitions_.find(slot);
    return found != definitions_.end() && region_of_[found->second] != 0 && region_of_[found->second] != region_of_[i];
  }

  bool is_recomputed(Slot slot) const {
    const auto found = definitions_.find(slot);
    if (found == definitions_.end() || !has_constant_values_[found->second]) return false;
    return is_chosen_[found->second] || (region_of_[found->second] != 0 && !kept_.contains(slot));
  }

  Slot name_of(Slot slot) const {
    const auto found = again_.find(slot);
    return found == again_.end() ? slot : found->second;
  }

  // The instructions that compute the value again, and what they need, in their order. `stops`: nothing beyond those
  // whose results stay.
  std::vector<size_t> needed_for(Slot wanted, bool stops) const {
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
      if (stops && stays_[i]) continue;
      for (const Arg& arg : instructions_[i].args) {
        for (Slot read : names_in(arg)) left.push_back(read);
      }
    }
    std::sort(needed.begin(), needed.end());
    return needed;
  }

  // Whether one more call may be appended.
  bool has_room(Made* made) const {
    const size_t calls = made->program.instructions().size();
    if (last_ > Program::kMaxNames || calls >= max_calls_) return false;
    if (calls % kCallsPerCharge == 0) {
      check_cancelled();
      charge(made);
    }
    return true;
  }
  // Charges for the Program, and for the passes' data about it, which are not larger.
  static void charge(Made* made) {
    const uint64_t bytes = 2 * made->program.bytes();
    if (bytes <= made->charge.bytes()) return;
    made->charge = HostCharge();  // before the charge for all
    made->charge = charge_session("a Program that computes values again", bytes);
  }

  // Appends the calls that compute the value. Returns false as run() does.
  bool compute_again(Slot wanted, Made* made) {
    if (!is_recomputed(wanted) || again_.contains(wanted)) return true;
    Program* const changed = &made->program;
    const std::vector<size_t> needed = needed_for(wanted, /*stops=*/false);
    // In parts, only what the value itself needs is there for later calls, beside what stays.
    const std::vector<size_t> direct = is_in_parts_ ? needed_for(wanted, /*stops=*/true) : needed;
    std::vector<size_t> dropped;
    for (size_t i : needed) {
      if (!has_room(made)) return false;
      const bool is_dropped = !stays_[i] && !std::binary_search(direct.begin(), direct.end(), i);
      if (is_dropped) dropped.push_back(i);
      const auto is_new = [&](Slot slot) {
        const auto& results = instructions_[i].results;
        return std::find(results.begin(), results.end(), slot) != results.end();
      };
      append_renamed(
          instructions_[i], [&](Slot slot) { return is_new(slot) ? again_[slot] = ++last_ : name_of(slot); }, changed);
      uint8_t& flags = changed->mutable_instructions().back().flags;
      flags = static_cast<uint8_t>((flags & ~Instruction::kRecompute) | (is_dropped ? kTwice : kNone));
    }
    for (size_t i : dropped) {
      for (Slot slot : instructions_[i].results) again_.erase(slot);
    }
    return true;
  }

  const std::vector<bool>& is_backward_;
  const Program& program_;
  const std::vector<Instruction>& instructions_;
  std::vector<bool> is_chosen_;  // by instruction
  std::vector<bool> stays_;      // by instruction
  bool is_in_parts_ = false;
  const std::vector<bool> has_constant_values_;
  std::vector<size_t> region_of_;  // by instruction; 0: in none
  absl::flat_hash_map<Slot, size_t> definitions_;
  absl::flat_hash_set<Slot> kept_;
  absl::flat_hash_map<Slot, Slot> again_;  // by name: the name of the value that is computed again
  Slot last_ = 0;
  size_t max_calls_ = 0;
  uint8_t last_mark_ = kNone;
};

}  // namespace

void mark_forward(Program* program) {
  std::vector<Instruction>& instructions = program->mutable_instructions();
  const auto is_forward = [](const Instruction& call) { return mark_of(call) != kNone && mark_of(call) != kTwice; };
  const auto last = std::find_if(instructions.rbegin(), instructions.rend(), is_forward).base();
  for (auto at = instructions.begin(); at != last; ++at) {
    at->flags &= static_cast<uint8_t>(~Instruction::kRecompute);
    at->flags |= Instruction::kRecomputeOdd;
  }
}

void remove_marks(Program* program) {
  for (Instruction& instruction : program->mutable_instructions()) {
    instruction.flags &= static_cast<uint8_t>(~Instruction::kRecompute);
  }
}

namespace {

// The peak of the Program's values when names are dropped after their last use.
int64_t peak_of(Program program, absl::Span<const TensorMeta* const> inputs) {
  remove_unused(&program);
  return peak_bytes(program, inputs, /*grad_enabled=*/false);
}

// Applies the budget's choice. What is computed again is computed in parts, of the size with the lowest peak.
bool apply_choice(const Recomputation& recomputation, const BudgetChoice& choice,
                  const std::vector<BudgetChoice>& larger, absl::Span<const TensorMeta* const> inputs, Made* changed) {
  Recomputation whole = recomputation;
  whole.choose(choice.again);
  if (!whole.run(std::numeric_limits<size_t>::max(), changed)) return false;
  const size_t max_calls = kMaxGrowth * changed->program.instructions().size();
  int64_t lowest = choice.again.empty() ? 0 : peak_of(changed->program, inputs);
  for (const BudgetChoice& other : larger) {
    // What the larger budget keeps stays during the backward part.
    std::vector<size_t> stay;
    std::set_difference(choice.again.begin(), choice.again.end(), other.again.begin(), other.again.end(),
                        std::back_inserter(stay));
    if (stay.empty()) continue;
    Recomputation in_parts = recomputation;
    in_parts.choose(choice.again);
    in_parts.keep_during_backward(stay);
    Made made;
    // Others that keep more values are not tried after one that computes too much again.
    if (!in_parts.run(max_calls, &made)) break;
    const int64_t peak = peak_of(made.program, inputs);
    if (peak >= lowest) continue;
    lowest = peak;
    *changed = std::move(made);
  }
  return true;
}

}  // namespace

Recomputed recompute(const std::vector<bool>& is_backward, const ProgramTypes* types,
                     absl::Span<const TensorMeta* const> inputs, double budget, Program* program) {
  Recomputed recomputed;
  const auto& instructions = program->instructions();
  const bool has_budget = budget < 1 && types != nullptr;
  if (!has_budget && std::none_of(instructions.begin(), instructions.end(), mark_of)) return recomputed;
  const Recomputation recomputation(is_backward, *program);
  BudgetChoice choice;
  std::vector<BudgetChoice> larger;
  if (has_budget) {
    std::vector<bool> is_again;
    is_again.reserve(instructions.size());
    for (size_t i = 0; i < instructions.size(); ++i) is_again.push_back(recomputation.is_again(i));
    const auto choose = [&](double part) {
      return choose_within_budget(*program, *types, inputs.size(), is_backward, is_again, part);
    };
    choice = choose(budget);
    recomputed.all_bytes = choice.all_bytes;
    recomputed.kept_bytes = choice.kept_bytes;
    for (double part : {0.0625, 0.125, 0.1875, 0.25, 0.375, 0.5, 0.75}) {
      if (part > budget && !choice.again.empty()) larger.push_back(choose(part));
    }
  }
  const size_t before = instructions.size();
  Made changed;
  if (!apply_choice(recomputation, choice, larger, inputs, &changed)) return {};
  recomputed.calls = changed.program.instructions().size() - before;
  *program = std::move(changed.program);
  return recomputed;
}

}  // namespace tt
