#include "engine/program/passes/fusion_limits.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/device/parallel.h"
#include "engine/dispatch/chain.h"
#include "engine/dispatch/chain_reduction.h"
#include "engine/program/chain_code.h"
#include "engine/program/chain_types.h"
#include "engine/program/passes/pointwise_call.h"
#include "engine/program/passes/shared_memory.h"
#include "engine/program/passes/writes.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

template <typename... Parts>
std::string text_of(const Parts&... parts) {
  return absl::StrCat(message_part(parts)...);
}

bool is_chain(const Instruction& instruction) { return instruction.op->id == op_id::kPointwiseChain; }

// An instruction as a part of loops.
struct Loop {
  bool is_pointwise = false;  // a pointwise call, or a chain
  bool is_reduction = false;  // of one operand, which could end a loop
  bool has_reduction = false;
  size_t calls = 1, inputs = 0;
};

class Explanation {
 public:
  Explanation(const Program& program, const ProgramTypes& types)
      : instructions_(program.instructions()), types_(types) {
    producers_.resize(instructions_.size());
    for (size_t i = 0; i < instructions_.size(); ++i) {
      const Instruction& instruction = instructions_[i];
      if (writes_in_place(instruction)) writes_.push_back(i);
      Loop& loop = loops_.emplace_back();
      for (size_t a = 0; a < instruction.args.size(); ++a) {
        for (Slot slot : names_in(instruction.args[a])) {
          if (slot == 0) continue;
          ++loop.inputs;
          const auto made = definitions_.find(slot);
          if (made == definitions_.end()) continue;
          const std::pair<size_t, Slot> edge(made->second, slot);
          if (std::find(producers_[i].begin(), producers_[i].end(), edge) == producers_[i].end())
            producers_[i].push_back(edge);
        }
        loop.inputs += is_number_for_tensor(instruction, a);
      }
      loop.is_pointwise = is_chain(instruction) || is_pointwise_call(instruction);
      loop.is_reduction = is_reduction_call(instruction);
      if (is_chain(instruction)) describe_chain(instruction, &loop);
      if ((instruction.flags & Instruction::kInto) != 0) continue;
      for (Slot slot : instruction.results) definitions_[slot] = i;
    }
  }

  std::string text(const std::string& reason) const {
    constexpr size_t kMaxText = size_t{1} << 20;  // bytes
    std::string text;
    for (size_t i = 0; i < instructions_.size(); ++i) {
      if (text.size() > kMaxText) return text + "and others\n";
      if (const std::string why = why_reduced_later(i); !why.empty()) text += text_of(name_of(i), ": ", why, "\n");
      for (const auto& [from, slot] : producers_[i]) {
        const std::string why = why_apart(from, slot, i, reason);
        if (why.empty()) continue;
        text += text_of(name_of(from), " and ", name_of(i), ": ", why, "\n");
      }
    }
    return text;
  }

 private:
  static void describe_chain(const Instruction& chain, Loop* loop) {
    try {
      const CodedSteps steps = read_chain(chain.args[1].ints(), names_in(chain.args[0]).size());
      loop->calls = steps.size();
      loop->has_reduction = !steps.back().op->is_pointwise;
    } catch (const Error&) {  // cannot happen in what the passes have made
      loop->is_pointwise = false;
    }
  }

  std::string name_of(size_t i) const {
    const Instruction& instruction = instructions_[i];
    std::string names;
    for (Slot slot : instruction.results) names += text_of(names.empty() ? "%" : ", %", slot);
    return text_of(names, names.empty() ? "" : " = ", is_chain(instruction) ? "loop" : instruction.op->name);
  }

  // Why a chain computes its reduction after the loop.
  std::string why_reduced_later(size_t i) const {
    if (!loops_[i].has_reduction) return "";
    const Instruction& chain = instructions_[i];
    std::vector<const TensorMeta*> inputs;
    for (Slot slot : names_in(chain.args[0])) inputs.push_back(&types_.of(slot));
    const CodedSteps steps = read_chain(chain.args[1].ints(), inputs.size());
    const std::vector<Inference> made = infer_steps(steps, inputs, /*grad_enabled=*/false);
    const TensorMeta& input = made[made.size() - 2].outputs[0];
    const std::string of = text_of(steps.back().op->name, " of ", to_string(input.sizes), " to ",
                                   to_string(made.back().outputs[0].sizes), " runs after the loop");
    switch (place_of_reduction(input, made.back().outputs[0], steps.back().args[1], num_threads())) {
      case ReductionPlace::kInLoop: return "";
      case ReductionPlace::kOtherLayout: return text_of(of, "; layout: strides ", to_string(input.strides));
      case ReductionPlace::kFewParts:
        return text_of(of, "; its result would be divided among fewer threads than ", num_threads());
      case ReductionPlace::kShortRuns:
        return text_of(of, "; reduction over a dimension with fewer than ", kMinReducedRun, " neighbouring elements");
    }
    return "";
  }

  std::string why_no_loop(size_t i) const {
    const Instruction& instruction = instructions_[i];
    switch (why_not_in_loop(instruction, types_)) {
      case NotInLoop::kNone: return "";
      case NotInLoop::kOperator: break;
      case NotInLoop::kArguments: return text_of(instruction.op->name, " will fail for these arguments");
      case NotInLoop::kRandom: return text_of(instruction.op->name, " draws random numbers");
      case NotInLoop::kDtype:
        return text_of("dtype: loops compute float32 and float64, ", instruction.op->name, " computes ",
                       types_.of(instruction.results[0]).dtype);
      case NotInLoop::kRecorded: return text_of("the tape records ", instruction.op->name);
      case NotInLoop::kSmall:
        return text_of("size: ", instruction.op->name, " has ", types_.of(instruction.results[0]).numel(),
                       " elements, loops are for at least ", kMinRegionElements);
      case NotInLoop::kDevice: return "the device has no loops that keep several results";
    }
    return "";
  }

  std::string why_apart(size_t from, Slot slot, size_t to, const std::string& reason) const {
    const Loop &a = loops_[from], &b = loops_[to];
    const Instruction &first = instructions_[from], &second = instructions_[to];
    if (!a.is_pointwise && !b.is_pointwise) return "";
    if (!writes_.empty()) {  // the passes see the parts between two writes
      if (writes_in_place(second)) {
        const bool writes_it = std::find(second.results.begin(), second.results.end(), slot) != second.results.end();
        return text_of("writes: ", second.op->name, writes_it ? " writes it in place" : " writes in place");
      }
      const auto between = std::upper_bound(writes_.begin(), writes_.end(), from);
      if (between != writes_.end() && *between < to)
        return text_of("writes: ", instructions_[*between].op->name, " between them writes in place");
    }
    if (!a.is_pointwise) return why_not_after(first);
    if (!is_chain(first)) {
      if (const std::string why = why_no_loop(from); !why.empty()) return why;
    }
    if (!b.is_pointwise && !b.is_reduction) return why_not_before(second);
    if (b.is_reduction) return why_not_reduced(from, slot, to, reason);
    if (!is_chain(second)) {
      if (const std::string why = why_no_loop(to); !why.empty()) return why;
    }
    return why_two_loops(from, slot, to, reason);
  }

  static std::string why_not_after(const Instruction& first) {
    if (!has_fresh_results(*first.op)) return text_of("layout: ", first.op->name, " returns a view");
    if (ends_chain(*first.op)) return text_of(first.op->name, " is a reduction: it is complete before it is read");
    return text_of(first.op->name, " has a kernel of its own");
  }

  static std::string why_not_before(const Instruction& second) {
    if (!has_fresh_results(*second.op)) return text_of("layout: ", second.op->name, " returns a view");
    return text_of(second.op->name, " has a kernel of its own");
  }

  std::string why_not_reduced(size_t from, Slot slot, size_t to, const std::string& reason) const {
    const Instruction& reduction = instructions_[to];
    const TensorMeta &input = types_.of(slot), &result = types_.of(reduction.results[0]);
    if (result.requires_grad) return text_of("the tape records ", reduction.op->name);
    if (result.dtype != input.dtype)
      return text_of("dtype: ", reduction.op->name, " of ", input.dtype, " has ", result.dtype);
    if (loops_[from].has_reduction) return "a loop ends with one reduction, and this one has another";
    if (loops_[from].calls >= kMaxChainSteps) return limit_of_calls();
    if (!reason.empty()) return reason;
    if (is_chain(instructions_[from]))
      return text_of("used elsewhere: other calls of the loop read %", slot, ", and the reduced value has to be last");
    return "they are divided differently among threads";
  }

  static std::string limit_of_calls() { return text_of("size limit: a loop has at most ", kMaxChainSteps, " calls"); }

  std::string why_two_loops(size_t from, Slot slot, size_t to, const std::string& reason) const {
    const TensorMeta &x = types_.of(slot), &y = types_.of(instructions_[to].results[0]);
    if (loops_[from].has_reduction && instructions_[from].results.back() == slot)
      return text_of("%", slot, " is a reduction: it is complete before it is read");
    if (x.device != y.device) return "they are on different devices";
    if (x.dtype != y.dtype) return text_of("dtype: ", x.dtype, " and ", y.dtype);
    if (x.sizes != y.sizes) return text_of("sizes: ", to_string(x.sizes), " and ", to_string(y.sizes));
    if (x.strides != y.strides) return text_of("layout: strides ", to_string(x.strides), " and ", to_string(y.strides));
    if (instructions_[from].flags != instructions_[to].flags)
      return "modes: only one of them records gradients, or the default dtype differs";
    if (loops_[from].calls + loops_[to].calls > kMaxChainSteps) return limit_of_calls();
    if (loops_[from].inputs + loops_[to].inputs > kMaxChainInputs)
      return text_of("size limit: a loop has at most ", kMaxChainInputs, " operands");
    if (const Slot between = value_between(from, to); between != 0)
      return text_of("used elsewhere: %", between, " is computed from the first, and the second reads it");
    if (!reason.empty()) return reason;
    return "one of the loops ends with a reduction already, or they have too many operands together";
  }

  // A value that depends on instruction `from`, is computed by another one, and that `to` reads; 0 if there is none, or
  // if the search takes too long.
  Slot value_between(size_t from, size_t to) const {
    constexpr size_t kMaxVisited = 512;
    absl::flat_hash_set<size_t> seen;
    for (const auto& [direct, slot] : producers_[to]) {
      if (direct == from && loops_[from].has_reduction && slot == instructions_[from].results.back()) return slot;
      if (direct == from) continue;
      std::vector<size_t> left = {direct};
      while (!left.empty()) {
        const size_t at = left.back();
        left.pop_back();
        if (at == from) return slot;
        if (at < from || seen.size() >= kMaxVisited || !seen.insert(at).second) continue;
        for (const auto& [producer, read] : producers_[at]) left.push_back(producer);
      }
    }
    return 0;
  }

  const std::vector<Instruction>& instructions_;
  const ProgramTypes& types_;
  std::vector<Loop> loops_;                                      // by instruction
  std::vector<std::vector<std::pair<size_t, Slot>>> producers_;  // by instruction: of what it reads
  absl::flat_hash_map<Slot, size_t> definitions_;
  std::vector<size_t> writes_;  // instructions that write in place
};

}  // namespace

NotInLoop why_not_in_loop(const Instruction& instruction, const ProgramTypes& types) {
  if (!is_pointwise_call(instruction)) return NotInLoop::kOperator;
  if (!has_valid_args(instruction)) return NotInLoop::kArguments;
  const TensorMeta& meta = types.of(instruction.results[0]);
  if (instruction.op->is_random) return NotInLoop::kRandom;
  if (meta.dtype != DType::kFloat32 && meta.dtype != DType::kFloat64) return NotInLoop::kDtype;
  if (meta.requires_grad) return NotInLoop::kRecorded;
  if (meta.numel() < kMinRegionElements) return NotInLoop::kSmall;
  if (!keeps_chain_results(meta.device.type)) return NotInLoop::kDevice;
  return NotInLoop::kNone;
}

bool have_equal_results(const Instruction& a, const Instruction& b, const ProgramTypes& types) {
  const TensorMeta &x = types.of(a.results[0]), &y = types.of(b.results[0]);
  return x.sizes == y.sizes && x.strides == y.strides && x.dtype == y.dtype && x.device == y.device &&
         a.flags == b.flags;
}

std::string explain_fusion(const Program& program, absl::Span<const TensorMeta* const> inputs, bool grad_enabled,
                           const std::string& reason) {
  const ProgramTypes types(program, inputs, grad_enabled, infer_with_chains);
  return Explanation(program, types).text(reason);
}

}  // namespace tt
