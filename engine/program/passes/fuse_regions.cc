#include "engine/program/passes/fuse_regions.h"

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "engine/device/cancellation.h"
#include "engine/dispatch/chain.h"
#include "engine/program/chain_code.h"
#include "engine/program/passes/fusion_limits.h"
#include "engine/program/passes/pointwise_call.h"
#include "engine/program/passes/stateful.h"
#include "engine/program/passes/writes.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

// Instructions that run as one. Its own instruction's group at first.
struct Group {
  std::vector<size_t> members;  // ascending
  absl::InlinedVector<Slot, kShortChain.inputs> inputs;
  size_t numbers = 0;  // that are passed for tensors
  // The members that run last: a pointwise instruction and the reduction of its result; both 0 without a reduction.
  size_t reduced = 0, reduction = 0;
};

class Groups {
 public:
  Groups(const Program& program, const ProgramTypes& types)
      : program_(program), instructions_(program.instructions()), types_(types) {
    group_of_.resize(instructions_.size());
    visited_.resize(instructions_.size());
    producers_.resize(instructions_.size());
    size_t last_draw = instructions_.size();
    for (size_t i = 0; i < instructions_.size(); ++i) {
      group_of_[i] = i;
      Group& group = groups_.emplace_back();
      group.members = {i};
      for (size_t a = 0; a < instructions_[i].args.size(); ++a) {
        const Arg& arg = instructions_[i].args[a];
        for (Slot slot : names_in(arg)) {
          if (slot == 0) continue;
          if (!contains(group.inputs, slot)) group.inputs.push_back(slot);
          if (const auto found = definitions_.find(slot); found != definitions_.end())
            producers_[i].push_back(found->second);
        }
        group.numbers += is_number_for_tensor(instructions_[i], a);
      }
      if (is_stateful(instructions_[i])) {
        if (last_draw < i) producers_[i].push_back(last_draw);
        last_draw = i;
      }
      for (Slot slot : instructions_[i].results) definitions_[slot] = i;
    }
  }

  void form() {
    constexpr size_t kBetweenChecks = 1024;
    for (size_t i = 0; i < instructions_.size(); ++i) {
      if (i % kBetweenChecks == 0) check_cancelled();
      if (!may_fuse(i)) continue;
      for (size_t producer : producers_[i]) {
        if (may_fuse(producer)) merge(group_of_[producer], group_of_[i]);
      }
    }
    for (size_t i = 0; i < instructions_.size(); ++i) {
      if (is_reduction_call(instructions_[i]) && has_valid_args(instructions_[i])) add_reduction(i);
    }
  }

  // The instructions with groups in place of their members.
  std::vector<Instruction> in_order(Program* program) const {
    // A group runs when all that its members read exists, the one with the earliest last member first.
    using Entry = std::pair<size_t, size_t>;  // last member, group
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    std::vector<size_t> missing(groups_.size());
    std::vector<std::vector<size_t>> consumers(groups_.size());
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (size_t member : groups_[g].members) {
        for (size_t producer : producers_[member]) {
          if (group_of_[producer] == g) continue;
          consumers[group_of_[producer]].push_back(g);
          ++missing[g];
        }
      }
      if (missing[g] == 0 && !groups_[g].members.empty()) ready.emplace(groups_[g].members.back(), g);
    }
    const std::vector<bool> read_outside = find_read_outside();
    std::vector<Instruction> ordered;
    ordered.reserve(instructions_.size());
    while (!ready.empty()) {
      const size_t g = ready.top().second;
      ready.pop();
      ordered.push_back(instruction_of(groups_[g], read_outside, program));
      for (size_t consumer : consumers[g]) {
        if (--missing[consumer] == 0) ready.emplace(groups_[consumer].members.back(), consumer);
      }
    }
    return ordered;
  }

 private:
  static bool contains(absl::Span<const Slot> slots, Slot slot) {
    return std::find(slots.begin(), slots.end(), slot) != slots.end();
  }

  const TensorMeta& result(size_t i) const { return types_.of(instructions_[i].results[0]); }

  bool may_fuse(size_t i) const { return why_not_in_loop(instructions_[i], types_) == NotInLoop::kNone; }

  bool match(size_t a, size_t b) const { return have_equal_results(instructions_[a], instructions_[b], types_); }

  // Merges the group `from` into `into`, of which it reads a result, if one loop can run both.
  void merge(size_t into, size_t from) {
    if (into == from) return;
    Group &a = groups_[into], &b = groups_[from];
    if (!match(a.members[0], b.members[0]) || a.members.size() + b.members.size() > kMaxChainSteps) return;
    Group both;
    std::merge(a.members.begin(), a.members.end(), b.members.begin(), b.members.end(),
               std::back_inserter(both.members));
    both.numbers = a.numbers + b.numbers;
    for (const Group* group : {&a, &b}) {
      for (Slot slot : group->inputs) {
        const auto made = definitions_.find(slot);
        const bool is_inner =
            made != definitions_.end() && (group_of_[made->second] == into || group_of_[made->second] == from);
        if (!is_inner && !contains(both.inputs, slot)) both.inputs.push_back(slot);
      }
    }
    if (both.inputs.size() + both.numbers > kMaxChainInputs || depends_through_others(from, into)) return;
    for (size_t member : b.members) group_of_[member] = into;
    a = std::move(both);
    b = Group();
  }

  // Adds a reduction to the group of the instruction whose result it reduces. A group of pointwise instructions never
  // depends on a result that depends on the group, so the reduction cannot close a cycle.
  void add_reduction(size_t i) {
    if (producers_[i].size() != 1) return;
    const size_t reduced = producers_[i][0], to = group_of_[reduced];
    Group& group = groups_[to];
    const TensorMeta& result = types_.of(instructions_[i].results[0]);
    if (!may_fuse(reduced) || group.reduction != 0 || group.members.size() == kMaxChainSteps || result.requires_grad ||
        result.dtype != this->result(reduced).dtype || instructions_[i].flags != instructions_[reduced].flags) {
      return;
    }
    for (size_t member : group.members) {  // the reduced member has to run last
      if (std::find(producers_[member].begin(), producers_[member].end(), reduced) != producers_[member].end()) return;
    }
    group.members.insert(std::upper_bound(group.members.begin(), group.members.end(), i), i);
    group.reduced = reduced;
    group.reduction = i;
    groups_[group_of_[i]].members.clear();
    group_of_[i] = to;
  }

  // The members in the order in which a loop runs them.
  static std::vector<size_t> steps_of(const Group& group) {
    if (group.reduction == 0) return group.members;
    std::vector<size_t> steps;
    for (size_t member : group.members) {
      if (member != group.reduced && member != group.reduction) steps.push_back(member);
    }
    steps.insert(steps.end(), {group.reduced, group.reduction});
    return steps;
  }

  // Whether the group reads a result that depends on `on` and is computed outside of both. Gives up, with true, after a
  // number of groups.
  bool depends_through_others(size_t group, size_t on) {
    constexpr size_t kMaxVisited = 512;
    ++visit_;
    std::vector<size_t> left;
    const auto push_producers = [&](size_t of, bool is_first) {
      for (size_t member : groups_[of].members) {
        for (size_t producer : producers_[member]) {
          const size_t g = group_of_[producer];
          if (g == of || (is_first && g == on) || visited_[g] == visit_) continue;
          visited_[g] = visit_;
          left.push_back(g);
        }
      }
    };
    push_producers(group, true);
    for (size_t visited = 0; !left.empty(); ++visited) {
      const size_t g = left.back();
      left.pop_back();
      if (g == on || visited == kMaxVisited) return true;
      push_producers(g, false);
    }
    return false;
  }

  // By instruction: whether another group, or the caller, reads its result.
  std::vector<bool> find_read_outside() const {
    std::vector<bool> read(instructions_.size());
    for (size_t i = 0; i < instructions_.size(); ++i) {
      for (size_t producer : producers_[i]) {
        if (group_of_[producer] != group_of_[i]) read[producer] = true;
      }
    }
    for (Slot slot : program_.outputs()) {
      if (const auto found = definitions_.find(slot); found != definitions_.end()) read[found->second] = true;
    }
    return read;
  }

  Instruction instruction_of(const Group& group, const std::vector<bool>& read_outside, Program* program) const {
    const std::vector<size_t> members = steps_of(group);
    Instruction made = instructions_[members[0]];
    made.release = {};
    if (members.size() == 1) return made;
    static const Op* const pointwise_chain = find_op(op_id::kPointwiseChain);
    ChainWriter writer;
    std::vector<Slot> results;
    size_t count = 0;
    for (size_t k = 0; k < members.size(); ++k) {
      const Instruction& step = instructions_[members[k]];
      const bool is_last = k + 1 == members.size();
      const bool is_kept = read_outside[members[k]] && !is_last;
      if (is_kept || is_last) results.push_back(step.results[0]);
      writer.begin_step(*step.op, step.site, step.results[0], step.args.size(), is_kept);
      for (const Arg& arg : step.args) {
        if (arg.kind != Arg::Kind::kSlot) {
          writer.add_value(arg);
          continue;
        }
        const auto input = std::find(group.inputs.begin(), group.inputs.end(), arg.slot);
        if (input != group.inputs.end()) {
          writer.add_input(static_cast<size_t>(input - group.inputs.begin()));
        } else {
          const auto member = std::find(members.begin(), members.end(), definitions_.at(arg.slot));
          writer.add_result(static_cast<size_t>(member - members.begin()));
        }
      }
      count += step.count;
    }
    ProgramMemory& memory = program->memory();
    absl::Span<Arg> args = memory.allocate<Arg>(2);
    new (&args[0]) Arg();
    args[0].kind = Arg::Kind::kSlots;
    args[0].size = static_cast<uint32_t>(group.inputs.size());
    args[0].slots = memory.copy(absl::MakeConstSpan(group.inputs)).data();
    new (&args[1]) Arg(memory.copy(writer.code()));
    made.op = pointwise_chain;
    made.args = args;
    made.results = memory.copy(absl::MakeConstSpan(results));
    made.count = static_cast<uint16_t>(count);
    return made;
  }

  const Program& program_;
  const std::vector<Instruction>& instructions_;
  const ProgramTypes& types_;
  std::vector<Group> groups_;     // by the index of a member; the others are empty
  std::vector<size_t> group_of_;  // by instruction
  std::vector<absl::InlinedVector<size_t, 4>> producers_;
  absl::flat_hash_map<Slot, size_t> definitions_;
  std::vector<uint32_t> visited_;  // by group: the last search that has visited it
  uint32_t visit_ = 0;
};

}  // namespace

void fuse_regions(Program* program, const ProgramTypes& types) {
  if (writes_in_place(*program)) return;
  Groups groups(*program, types);
  groups.form();
  std::vector<Instruction> ordered = groups.in_order(program);
  program->mutable_instructions() = std::move(ordered);
}

}  // namespace tt
