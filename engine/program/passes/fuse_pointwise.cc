#include "engine/program/passes/fuse_pointwise.h"

#include <algorithm>
#include <array>

#include "absl/container/inlined_vector.h"
#include "engine/device/failed_check.h"
#include "engine/dispatch/call_scope.h"
#include "engine/dispatch/chain.h"
#include "engine/dispatch/dispatcher.h"

namespace tt {
namespace {

// For smaller results one loop saves less than looking for it costs.
constexpr int64_t kWorthwhile = 1 << 14;

bool may_join(const Instruction& instruction) {
  return instruction.op->is_pointwise && instruction.results.size() == 1 &&
         (instruction.flags & Instruction::kInto) == 0 && instruction.args.size() <= instruction.op->params.size();
}

bool reads(const Instruction& instruction, Slot slot) {
  return std::any_of(instruction.args.begin(), instruction.args.end(),
                     [=](const Arg& arg) { return arg.kind == Arg::Kind::kSlot && arg.slot == slot; });
}

bool reads_large(const Instruction& instruction, const SlotTable& slots) {
  return std::any_of(instruction.args.begin(), instruction.args.end(), [&](const Arg& arg) {
    const SlotValue* value = arg.kind == Arg::Kind::kSlot ? slots.find(arg.slot) : nullptr;
    return value && value->tensor && value->tensor.numel() >= kWorthwhile;
  });
}

// Cheap, since every instruction is asked.
bool may_begin(const Program& program, size_t first, const SlotTable& slots) {
  const auto& instructions = program.instructions;
  return first + 1 < instructions.size() && may_join(instructions[first]) && may_join(instructions[first + 1]) &&
         reads(instructions[first + 1], instructions[first].results[0]) && reads_large(instructions[first], slots) &&
         CallScope::current().modes.empty();
}

bool records_gradients(const Instruction& instruction) {
  return (instruction.flags & Instruction::kGrad) && !(instruction.flags & Instruction::kInference);
}

bool has(absl::Span<const Slot> slots, Slot slot) { return std::find(slots.begin(), slots.end(), slot) != slots.end(); }

class ChainBuilder {
 public:
  ChainBuilder(const Program& program, size_t first, const SlotTable& slots)
      : instructions_(absl::MakeConstSpan(program.instructions).subspan(first)), program_(program), slots_(slots) {}

  // Takes instructions in as long as they fit, then gives up those whose intermediate results are
  // needed after all. How many are left.
  size_t build() {
    const size_t most = std::min(kMaxChainSteps, instructions_.size());
    while (length_ < most && add(instructions_[length_])) ++length_;
    while (length_ >= 2 && !only_last_remains()) --length_;
    return length_ >= 2 ? length_ : 0;
  }

  // Computes the last result.
  Tensor run() {
    Tensor out = allocate(steps_[length_ - 1].inferred.outputs[0]);
    absl::InlinedVector<ChainStep, kMaxChainSteps> chain;
    for (size_t i = 0; i < length_; ++i) {
      Step& step = steps_[i];
      for (size_t a = 0; a < step.args.size(); ++a) {
        if (step.from[a] >= 0) {
          step.args[a].kind = Arg::Kind::kSlot;
          step.args[a].slot = static_cast<Slot>(step.from[a]);
        }
      }
      chain.push_back({instructions_[i].op, step.args, step.inferred.compute});
    }
    Dispatcher::instance().chain_kernel(steps_[0].inferred.backend)(chain, out);
    if (CallScope::current().observes_kernels()) taint(out);
    return out;
  }

  // What the instructions do to the names: drops, and the last result; names of intermediate results
  // that are dropped only after the chain stand for nothing until then.
  void commit(Tensor out, SlotTable& slots) const {
    static const auto never_made = std::make_shared<const Poison>(
        Poison{ErrorKind::kRuntime, "an intermediate result that was to be dropped unread", "", 0, false});
    for (size_t i = 0; i + 1 < length_; ++i) {
      if (!released_inside(result(i))) slots.put(result(i), {Tensor(), never_made});
    }
    for (size_t i = 0; i < length_; ++i) {
      for (Slot slot : instructions_[i].release) {
        if (index_of(slot, i) < 0) slots.release(slot);
      }
    }
    slots.put(result(length_ - 1), {std::move(out), nullptr});
  }

 private:
  struct Step {
    absl::InlinedVector<Arg, 6> args;
    absl::InlinedVector<int8_t, 6> from;  // the step whose result an argument is; -1 for none
    Inference inferred;
  };

  // What the result came from may still turn out to have failed.
  void taint(const Tensor& out) const {
    for (size_t i = 0; i < length_; ++i) {
      Call call;
      call.op = instructions_[i].op;
      call.args = steps_[i].args;
      call.outputs = {out};
      CallScope::current().after_kernel(call);
    }
  }

  Slot result(size_t i) const { return instructions_[i].results[0]; }
  // Which of the first `count` instructions gave the result of that name; -1 for none.
  int index_of(Slot slot, size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      if (result(i) == slot) return static_cast<int>(i);
    }
    return -1;
  }
  bool released_inside(Slot slot) const {
    for (size_t i = 0; i < length_; ++i) {
      if (has(instructions_[i].release, slot)) return true;
    }
    return false;
  }

  // Whether all results but the last are dropped before anything but the chain can read them.
  bool only_last_remains() const {
    const auto after = length_ < instructions_.size() ? instructions_[length_].release : program_.release;
    for (size_t i = 0; i + 1 < length_; ++i) {
      if (!released_inside(result(i)) && !has(after, result(i))) return false;
    }
    return true;
  }

  bool add(const Instruction& instruction) {
    if (!may_join(instruction) || instruction.flags != instructions_[0].flags) return false;
    if (length_ > 0 && !reads(instruction, result(length_ - 1))) return false;
    const Slot name = instruction.results[0];
    if (name == 0 || slots_.find(name) || index_of(name, length_) >= 0) return false;
    if (!add_releases(instruction)) return false;
    Step& step = steps_[length_];
    for (const Arg& arg : instruction.args) {
      if (!add_argument(arg, &step)) return false;
    }
    for (size_t i = instruction.args.size(); i < instruction.op->params.size(); ++i) {
      step.args.push_back(instruction.op->params[i].default_value);
      step.from.push_back(-1);
    }
    return infers(instruction, &step);
  }

  bool add_releases(const Instruction& instruction) {
    for (Slot slot : instruction.release) {
      if (has(released_, slot) || (index_of(slot, length_) < 0 && !slots_.find(slot))) return false;
      released_.push_back(slot);
    }
    return true;
  }

  bool add_argument(const Arg& arg, Step* step) {
    if (arg.kind == Arg::Kind::kSlots) return false;
    if (arg.kind != Arg::Kind::kSlot) {
      step->args.push_back(arg);
      step->from.push_back(-1);
      return !arg.is_number() || ++inputs_ <= kMaxChainInputs;  // more than there are, where it is a parameter
    }
    if (has(released_, arg.slot)) return false;
    const int from = index_of(arg.slot, length_);
    step->from.push_back(static_cast<int8_t>(from));
    if (from >= 0) {
      step->args.push_back(Arg(&steps_[from].inferred.outputs[0]));
      return true;
    }
    const SlotValue* value = slots_.find(arg.slot);
    if (!value || value->poison || !value->tensor) return false;
    kept_.push_back(value->tensor);
    step->args.push_back(Arg(value->tensor.get()));
    return ++inputs_ <= kMaxChainInputs;
  }

  bool infers(const Instruction& instruction, Step* step) {
    try {
      instruction.op->check_args(step->args);
      run_recoverably([&] { infer(*instruction.op, step->args, records_gradients(instruction), &step->inferred); });
    } catch (const Error&) {
      return false;
    }
    const Inference& inferred = step->inferred;
    const TensorMeta& meta = inferred.outputs[0];
    if (inferred.requires_grad || !Dispatcher::instance().chain_kernel(inferred.backend)) return false;
    // Inner results must be what a block of the computation holds; the last one may be, too.
    const bool whole = inferred.compute == DType::kFloat32 || inferred.compute == DType::kFloat64 ||
                       inferred.compute == DType::kInt32 || inferred.compute == DType::kInt64;
    if (!whole || (meta.dtype != inferred.compute && meta.dtype != DType::kBool)) return false;
    if (length_ == 0) return meta.numel() >= kWorthwhile;
    const Inference& start = steps_[0].inferred;
    return inferred.compute == start.compute && inferred.backend == start.backend &&
           meta.sizes == start.outputs[0].sizes;
  }

  absl::Span<const Instruction> instructions_;
  const Program& program_;
  const SlotTable& slots_;
  size_t length_ = 0;
  size_t inputs_ = 0;
  std::array<Step, kMaxChainSteps> steps_;
  absl::InlinedVector<Slot, 8> released_;
  Tensors kept_;  // arguments stay, though their names may be dropped on the way
};

}  // namespace

size_t fuse_pointwise(const Program& program, size_t first, SlotTable& slots) {
  if (!may_begin(program, first, slots)) return 0;
  ChainBuilder chain(program, first, slots);
  const size_t length = chain.build();
  if (length == 0) return 0;
  Tensor out;
  try {
    out = chain.run();
  } catch (const std::exception&) {
    return 0;  // nothing has changed: whose fault it was shows when they run one by one
  }
  chain.commit(std::move(out), slots);
  return length;
}

}  // namespace tt
