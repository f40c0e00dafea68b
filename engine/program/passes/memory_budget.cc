#include "engine/program/passes/memory_budget.h"

#include <algorithm>
#include <queue>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/program/passes/shared_memory.h"
#include "engine/program/passes/stateful.h"
#include "engine/program/passes/writes.h"

namespace tt {
namespace {

// The multiplications of a product or a convolution; 0 for other operators.
double multiplications(const Instruction& instruction, const ProgramTypes& types) {
  const std::string_view name = instruction.op->name;
  const auto meta = [&](size_t arg) -> const TensorMeta* {
    const bool has_name = arg < instruction.args.size() && instruction.args[arg].kind == Arg::Kind::kSlot &&
                          types.contains(instruction.args[arg].slot);
    return has_name ? &types.of(instruction.args[arg].slot) : nullptr;
  };
  const double results = static_cast<double>(types.of(instruction.results[0]).numel());
  if (name.find("attention") != name.npos) {
    const TensorMeta* const keys = meta(1);
    return keys == nullptr || keys->sizes.size() < 2
               ? 0
               : 2 * results * static_cast<double>(keys->sizes[keys->sizes.size() - 2]);
  }
  if (name.find("conv") != name.npos) {
    const TensorMeta* const weight = meta(1);
    return weight == nullptr || weight->sizes.empty() || weight->sizes[0] == 0
               ? 0
               : results * static_cast<double>(weight->numel()) / static_cast<double>(weight->sizes[0]);
  }
  const bool adds = name == "addmm" || name == "baddbmm" || name == "addmv" || name == "addbmm";
  if (!adds && name != "matmul" && name != "mm" && name != "bmm" && name != "mv" && name != "dot" && name != "linear" &&
      name != "bilinear") {
    return 0;
  }
  const TensorMeta* const left = meta(adds ? 1 : 0);
  return left == nullptr || left->sizes.empty() ? 0 : results * static_cast<double>(left->sizes.back());
}

// The instruction's time, in elements that a loop reads or writes.
double cost_of(const Instruction& instruction, const ProgramTypes& types) {
  constexpr double kCall = 512;                     // of any call
  constexpr double kMultiplicationsPerElement = 8;  // of a good product
  if (!has_fresh_results(*instruction.op)) return kCall;
  double elements = 0;
  const auto add = [&](Slot slot) {
    if (slot != 0 && types.contains(slot)) elements += static_cast<double>(types.of(slot).numel());
  };
  for (const Arg& arg : instruction.args) {
    for (Slot slot : names_in(arg)) add(slot);
  }
  for (Slot slot : instruction.results) add(slot);
  return kCall + elements + multiplications(instruction, types) / kMultiplicationsPerElement;
}

class Chooser {
 public:
  Chooser(const Program& program, const ProgramTypes& types, size_t inputs, const std::vector<bool>& is_backward,
          const std::vector<bool>& is_again)
      : instructions_(program.instructions()), types_(types), groups_(program), is_again_(is_again) {
    const std::vector<bool> is_constant = instructions_with_constant_values(program);
    for (Slot slot = 1; slot <= inputs; ++slot) at(slot).is_free = true;
    for (Slot slot : program.outputs()) at(slot).is_free = true;
    for (size_t i = 0; i < instructions_.size(); ++i) {
      if (is_backward[i]) continue;
      const Instruction& instruction = instructions_[i];
      for (Slot slot : instruction.results) {
        Group& group = at(slot);
        if (!is_constant[i]) group.is_constant = false;
        if ((instruction.flags & Instruction::kInto) != 0) continue;
        definitions_[slot] = i;
        if (group.members.empty() || group.members.back() != i) {
          group.members.push_back(i);
          group.cost += cost_of(instruction, types);
        }
        if (has_fresh_results(*instruction.op))
          group.bytes += types.of(slot).numel() * static_cast<int64_t>(item_size(types.of(slot).dtype));
      }
    }
    for (size_t i = 0; i < instructions_.size(); ++i) {
      if (!is_backward[i]) continue;
      for (const Arg& arg : instructions_[i].args) {
        for (Slot slot : names_in(arg)) {
          if (definitions_.contains(slot)) need(slot);
        }
      }
    }
  }

  BudgetChoice choose(double budget) {
    BudgetChoice choice;
    choice.all_bytes = choice.kept_bytes = kept_bytes_;
    const double limit = budget * static_cast<double>(choice.all_bytes);
    // Every choice changes the costs of others; those in the queue are lower bounds mostly, so that they are computed
    // again when they are next.
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> next;
    for (Slot group : kept_order_) push(group, &next);
    while (static_cast<double>(kept_bytes_) > limit && !next.empty()) {
      const Entry entry = next.top();
      next.pop();
      if (!is_kept(entry.second)) continue;
      const double now = cost_per_byte(entry.second);
      if (!next.empty() && now > next.top().first) {
        if (now < kNever) next.emplace(now, entry.second);
        continue;
      }
      if (now >= kNever) continue;
      const size_t known = kept_order_.size();
      take(entry.second, &choice.again);
      for (size_t i = known; i < kept_order_.size(); ++i) push(kept_order_[i], &next);
    }
    choice.kept_bytes = kept_bytes_;
    std::sort(choice.again.begin(), choice.again.end());
    return choice;
  }

 private:
  using Entry = std::pair<double, Slot>;  // time per byte, group
  static constexpr double kNever = 1e300;
  // Groups that one choice computes again at most: the search visits them for each choice.
  static constexpr size_t kMaxClosure = 1024;

  // Names that share memory.
  struct Group {
    bool is_free = false;     // it exists anyway
    bool is_constant = true;  // its values can be computed again
    bool is_kept = false;     // for backward
    bool is_taken = false;    // it is computed again
    int64_t bytes = 0;
    double cost = 0;
    std::vector<size_t> members;  // the calls that have made its names
  };
  // What computing a group again needs.
  struct Closure {
    std::vector<Slot> groups;  // it, and others that are computed again with it
    std::vector<Slot> kept;    // others that have to be kept
    double cost = 0;
    int64_t bytes = 0;  // that are no longer kept
  };

  Group& at(Slot slot) { return all_[groups_.of(slot)]; }
  bool is_kept(Slot group) { return all_[group].is_kept; }

  // Backward, or a call that is repeated for it, reads the value.
  void need(Slot slot) {
    std::vector<Slot> left = {slot};
    while (!left.empty()) {
      const Slot read = left.back();
      left.pop_back();
      const auto found = definitions_.find(read);
      if (found == definitions_.end()) continue;
      const size_t i = found->second;
      if (is_again_[i]) {
        if (!visited_.insert(i).second) continue;
        for (const Arg& arg : instructions_[i].args) {
          for (Slot each : names_in(arg)) left.push_back(each);
        }
        continue;
      }
      keep(groups_.of(read));
    }
  }

  void keep(Slot root) {
    Group& group = all_[root];
    if (group.is_free || group.is_kept || group.is_taken || group.bytes == 0) return;
    group.is_kept = true;
    kept_bytes_ += group.bytes;
    kept_order_.push_back(root);
  }

  bool may_take(const Group& group) const { return !group.is_free && group.is_constant && !group.members.empty(); }

  Closure closure_of(Slot root) {
    Closure closure;
    absl::flat_hash_set<Slot> seen = {root};
    closure.groups = {root};
    closure.bytes = all_[root].bytes;
    for (size_t next = 0; next < closure.groups.size() && closure.groups.size() <= kMaxClosure; ++next) {
      const Group& group = all_.at(closure.groups[next]);
      closure.cost += group.cost;
      for (size_t i : group.members) {
        for (const Arg& arg : instructions_[i].args) {
          for (Slot slot : names_in(arg)) {
            if (!definitions_.contains(slot)) continue;
            const Slot read = groups_.of(slot);
            const Group& source = all_.at(read);
            if (source.is_free || source.is_kept || source.is_taken || !seen.insert(read).second) continue;
            if (may_take(source)) {
              closure.groups.push_back(read);
            } else {
              closure.kept.push_back(read);
              closure.bytes -= source.bytes;
            }
          }
        }
      }
    }
    return closure;
  }

  double cost_per_byte(Slot root) {
    if (!may_take(all_[root])) return kNever;
    const Closure closure = closure_of(root);
    return closure.bytes <= 0 || closure.groups.size() > kMaxClosure
               ? kNever
               : closure.cost / static_cast<double>(closure.bytes);
  }

  void push(Slot root, std::priority_queue<Entry, std::vector<Entry>, std::greater<>>* next) {
    const double cost = cost_per_byte(root);
    if (cost < kNever) next->emplace(cost, root);
  }

  void take(Slot root, std::vector<size_t>* again) {
    const Closure closure = closure_of(root);
    for (Slot taken : closure.groups) {
      Group& group = all_[taken];
      if (group.is_kept) kept_bytes_ -= group.bytes;
      group.is_kept = false;
      group.is_taken = true;
      again->insert(again->end(), group.members.begin(), group.members.end());
    }
    for (Slot kept : closure.kept) keep(kept);
  }

  const std::vector<Instruction>& instructions_;
  const ProgramTypes& types_;
  const MemoryGroups groups_;
  const std::vector<bool>& is_again_;
  absl::flat_hash_map<Slot, Group> all_;           // by group
  absl::flat_hash_map<Slot, size_t> definitions_;  // by name: the call of forward that has made it
  absl::flat_hash_set<size_t> visited_;
  std::vector<Slot> kept_order_;  // groups that are or were kept
  int64_t kept_bytes_ = 0;
};

}  // namespace

std::vector<bool> instructions_with_constant_values(const Program& program) {
  const MemoryGroups groups(program);
  absl::flat_hash_set<Slot> written;
  for (const Instruction& instruction : program.instructions())
    for_each_written(instruction, [&](Slot slot) { written.insert(groups.of(slot)); });
  std::vector<bool> constant;
  constant.reserve(program.instructions().size());
  for (const Instruction& instruction : program.instructions()) {
    const auto is_written = [&](Slot slot) { return slot != 0 && written.contains(groups.of(slot)); };
    bool is_constant = !is_stateful(instruction) && !writes_in_place(instruction) &&
                       std::none_of(instruction.results.begin(), instruction.results.end(), is_written);
    for (const Arg& arg : instruction.args) {
      const absl::Span<const Slot> names = names_in(arg);
      is_constant &= std::none_of(names.begin(), names.end(), is_written);
    }
    constant.push_back(is_constant);
  }
  return constant;
}

BudgetChoice choose_within_budget(const Program& program, const ProgramTypes& types, size_t inputs,
                                  const std::vector<bool>& is_backward, const std::vector<bool>& is_again,
                                  double budget) {
  return Chooser(program, types, inputs, is_backward, is_again).choose(budget);
}

}  // namespace tt
