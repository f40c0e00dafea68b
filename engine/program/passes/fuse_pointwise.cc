#include "engine/program/passes/fuse_pointwise.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "engine/dispatch/chain.h"
#include "engine/program/chain_code.h"
#include "engine/program/passes/pointwise_call.h"
#include "engine/schema/autocast.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

bool may_join(const Instruction& instruction, bool autocasts) {
  if (autocasts && has_autocast_policy(*instruction.op)) return false;
  return is_pointwise_call(instruction);
}

// What the session does with calls besides executing them.
struct Modes {
  bool autocasts = false;
  bool is_observed = false;
};

// Whether the instruction reduces `result` and may be part of its loop.
bool may_end(const Instruction& instruction, Slot result, const Modes& modes) {
  if (modes.is_observed || (modes.autocasts && has_autocast_policy(*instruction.op))) return false;
  return is_reduction_call(instruction) && instruction.args[0].slot == result;
}

bool reads(const Instruction& instruction, Slot slot) {
  return std::any_of(instruction.args.begin(), instruction.args.end(),
                     [=](const Arg& arg) { return arg.kind == Arg::Kind::kSlot && arg.slot == slot; });
}

bool has(absl::Span<const Slot> slots, Slot slot) { return std::find(slots.begin(), slots.end(), slot) != slots.end(); }

// Estimates for results that are not computed yet: whether they may be large, whether the tape may record them, and
// whether they may have a dtype that block-wise loops do not support. A result is assumed to be small if all of its
// inputs are, and to have a supported dtype if all of its inputs have one.
class Estimates {
 public:
  enum Bits : uint8_t { kKnown = 1, kLarge = 2, kRecorded = 4, kOtherType = 8 };

  Estimates(const std::vector<Instruction>& instructions, const SlotTable& slots) : slots_(slots) {
    for (const Instruction& instruction : instructions) {
      if (instruction.results.empty() || (instruction.flags & Instruction::kInto)) continue;
      first_ = instruction.results[0];
      break;
    }
    bits_.assign(2 * instructions.size(), 0);
  }

  // Estimates the results of `instruction`. The estimates of earlier instructions must have been added.
  uint8_t of(const Instruction& instruction) const {
    uint8_t bits = kKnown;
    bool reads = false;
    for (const Arg& arg : instruction.args) {
      if (arg.kind == Arg::Kind::kSlot) {
        bits |= of(arg.slot);
        reads = true;
      }
      if (arg.kind != Arg::Kind::kSlots) continue;
      for (uint32_t i = 0; i < arg.size; ++i) bits |= of(arg.slots[i]);
      reads = true;
    }
    if (!reads) bits |= kLarge | kOtherType;  // without inputs, size and dtype are unknown
    const bool records = (instruction.flags & Instruction::kGrad) && !(instruction.flags & Instruction::kInference);
    return records ? bits : bits & ~kRecorded;
  }
  void add(const Instruction& instruction, uint8_t bits) {
    if (instruction.flags & Instruction::kInto) return;
    for (Slot slot : instruction.results) {
      if (slot - first_ < bits_.size()) bits_[slot - first_] = bits;
    }
  }

  uint8_t of(Slot slot) const {
    if (slot - first_ < bits_.size() && bits_[slot - first_] != 0) return bits_[slot - first_];
    const SlotValue* value = slots_.find(slot);
    if (value == nullptr) return kKnown | kLarge | kOtherType;
    if (!value->tensor) return kKnown;
    const DType dtype = value->tensor.dtype();
    const bool blocks = dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt32 ||
                        dtype == DType::kInt64 || dtype == DType::kBool;
    return static_cast<uint8_t>(kKnown | (value->tensor.numel() >= kMinFusedElements ? kLarge : 0) |
                                (value->tensor.requires_grad() ? kRecorded : 0) | (blocks ? 0 : kOtherType));
  }

 private:
  const SlotTable& slots_;
  Slot first_ = 0;
  absl::InlinedVector<uint8_t, 512> bits_;  // indexed by name - first_; clients assign ascending names
};

// The longest chain of instructions that can be fused, starting at `first`.
class Chain {
 public:
  // `reads`: those after instruction `first`.
  Chain(const Program& program, size_t first, absl::Span<const ReadPoint> reads, const SlotTable& slots,
        const Estimates& estimates, const Modes& modes)
      : program_(program),
        instructions_(absl::MakeConstSpan(program.instructions()).subspan(first)),
        first_(first),
        reads_(reads),
        slots_(slots),
        estimates_(estimates),
        modes_(modes) {}

  // Returns the chain's number of instructions; 0 if there is nothing to fuse. `newest` is the largest handle that the
  // Program has defined so far.
  size_t find(Slot newest) {
    const size_t before_read = reads_.empty() ? SIZE_MAX : reads_[0].instruction - first_;
    const size_t max_length = std::min({kShortChain.steps, instructions_.size(), before_read});
    while (length_ < max_length && !is_reduced() && add(instructions_[length_], newest)) ++length_;
    while (length_ >= 2 && !only_last_remains()) --length_;
    return length_ >= 2 ? length_ : 0;
  }

  // Returns the instruction that replaces the chain. Adds the names to drop after that instruction to `dropped`.
  Instruction fuse(Program* program, std::vector<Slot>* dropped) {
    static const Op* const pointwise_chain = find_op(op_id::kPointwiseChain);
    static thread_local ChainWriter writer;
    writer.clear();
    inputs_.clear();
    for (size_t i = 0; i < length_; ++i) {
      const Instruction& step = instructions_[i];
      writer.begin_step(*step.op, step.site, step.results.empty() ? 0 : step.results[0], step.args.size());
      for (const Arg& arg : step.args) {
        if (arg.kind != Arg::Kind::kSlot) {
          writer.add_value(arg);
        } else if (const int from = index_of(arg.slot, i); from >= 0) {
          writer.add_result(static_cast<size_t>(from));
        } else {
          writer.add_input(input(arg.slot));
        }
      }
      if (i == 0) continue;
      for (Slot slot : step.release) {
        if (index_of(slot, length_) < 0) dropped->push_back(slot);
      }
    }
    ProgramMemory& memory = program->memory();
    absl::Span<Arg> args = memory.allocate<Arg>(2);
    new (&args[0]) Arg();
    args[0].kind = Arg::Kind::kSlots;
    args[0].size = static_cast<uint32_t>(inputs_.size());
    args[0].slots = memory.copy(absl::MakeConstSpan(inputs_)).data();
    new (&args[1]) Arg(memory.copy(writer.code()));
    Instruction fused = instructions_[0];
    fused.op = pointwise_chain;
    fused.args = args;
    fused.results = instructions_[length_ - 1].results;
    fused.count = static_cast<uint16_t>(length_);
    return fused;
  }

  bool is_intermediate(Slot slot) const {
    const int index = index_of(slot, length_);
    return index >= 0 && static_cast<size_t>(index) + 1 < length_;
  }

 private:
  Slot result(size_t i) const { return instructions_[i].results[0]; }
  bool is_reduced() const { return length_ > 0 && !instructions_[length_ - 1].op->is_pointwise; }
  // Index of the instruction among the first `count` that defines the name; -1 if none.
  int index_of(Slot slot, size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      if (result(i) == slot) return static_cast<int>(i);
    }
    return -1;
  }
  size_t input(Slot slot) {
    auto found = std::find(inputs_.begin(), inputs_.end(), slot);
    if (found == inputs_.end()) found = inputs_.insert(inputs_.end(), slot);
    return static_cast<size_t>(found - inputs_.begin());
  }

  bool add(const Instruction& instruction, Slot newest) {
    constexpr size_t kMaxReleases = 32;  // searched linearly
    const bool ends = length_ > 0 && may_end(instruction, result(length_ - 1), modes_);
    if (!(ends || may_join(instruction, modes_.autocasts)) || instruction.flags != instructions_[0].flags) return false;
    if (instruction.release.size() > kMaxReleases || !has_valid_args(instruction)) return false;
    if (length_ > 0 && !reads(instruction, result(length_ - 1))) return false;
    // Must be a new name; clients assign ascending names.
    const Slot name = instruction.results[0];
    if (name <= std::max(newest, length_ > 0 ? result(length_ - 1) : 0) || slots_.find(name)) return false;
    for (Slot slot : instruction.release) {
      // The instruction that replaces the chain drops this name. Dropping an unknown name is an error, so the name must
      // exist.
      const bool may_exist = slot <= newest || index_of(slot, length_) >= 0 || slots_.find(slot);
      if (!may_exist || has(released_, slot) || has(program_.outputs(), slot)) return false;
      // Fusion delays the release of an input until the whole chain has run. This is not worthwhile for a dtype for
      // which the steps run one by one, because then the chain does not save memory for intermediate results either.
      const bool is_input = length_ > 0 && index_of(slot, length_) < 0;
      if (is_input && (estimates_.of(slot) & Estimates::kOtherType)) return false;
      released_.push_back(slot);
    }
    for (size_t a = 0; a < instruction.args.size(); ++a) {
      const Arg& arg = instruction.args[a];
      if (arg.kind == Arg::Kind::kSlot) {
        const bool is_input = index_of(arg.slot, length_) < 0;
        if (has(released_, arg.slot) || (is_input && arg.slot > newest && !slots_.find(arg.slot))) return false;
        inputs_read_ += is_input;
      }
      inputs_read_ += is_number_for_tensor(instruction, a);
    }
    return inputs_read_ <= kShortChain.inputs;
  }

  // Whether all results but the last are dropped before any instruction outside the chain can read them.
  bool only_last_remains() const {
    absl::Span<const Slot> after = program_.release();
    if (length_ < instructions_.size()) after = instructions_[length_].release;
    for (size_t i = 0; i + 1 < length_; ++i) {
      const Slot name = result(i);
      auto releases = std::count(after.begin(), after.end(), name);
      for (size_t k = i + 1; k < length_; ++k) releases += has(instructions_[k].release, name);
      if (releases != 1 || has(program_.outputs(), name) || is_read_after(name)) return false;
    }
    return true;
  }

  // Whether the name is read between the chain and the next instruction, which may release it.
  bool is_read_after(Slot name) const {
    for (const ReadPoint& read : reads_) {
      if (read.instruction > first_ + length_) break;
      if (read.slot == name) return true;
    }
    return false;
  }

  const Program& program_;
  const absl::Span<const Instruction> instructions_;
  const size_t first_;
  const absl::Span<const ReadPoint> reads_;
  const SlotTable& slots_;
  const Estimates& estimates_;
  const Modes modes_;
  size_t length_ = 0;
  size_t inputs_read_ = 0;
  absl::InlinedVector<Slot, 8> released_;
  absl::InlinedVector<Slot, 8> inputs_;
};

bool may_begin(const std::vector<Instruction>& instructions, size_t first, const Modes& modes) {
  if (first + 1 >= instructions.size() || !may_join(instructions[first], modes.autocasts)) return false;
  const Instruction& next = instructions[first + 1];
  const Slot result = instructions[first].results[0];
  return may_end(next, result, modes) || (may_join(next, modes.autocasts) && reads(next, result));
}

// The session's modes, and those that the instructions set.
Modes with_changes(Modes modes, const std::vector<Instruction>& instructions) {
  for (const Instruction& instruction : instructions) {
    modes.autocasts |= instruction.op->id == op_id::kSetAutocast;
    modes.is_observed |= instruction.op->id == op_id::kProfilerStart;
  }
  return modes;
}

// Returns `before`, followed by `names` without the intermediate results of `chain`.
absl::Span<const Slot> merged(ProgramMemory& memory, absl::Span<const Slot> names, const std::vector<Slot>& before,
                              const Chain& chain) {
  absl::Span<Slot> all = memory.allocate<Slot>(before.size() + names.size());
  auto end = std::copy(before.begin(), before.end(), all.begin());
  end = std::copy_if(names.begin(), names.end(), end, [&](Slot slot) { return !chain.is_intermediate(slot); });
  return all.first(static_cast<size_t>(end - all.begin()));
}

}  // namespace

void fuse_pointwise(Program* program, const SlotTable& slots, absl::Span<const ReadPoint> reads, bool autocasts,
                    bool is_observed) {
  constexpr size_t kMaxOutputs = 32;  // searched linearly
  if (program->outputs().size() > kMaxOutputs) return;
  std::vector<Instruction>& instructions = program->mutable_instructions();
  const Modes modes = with_changes({autocasts, is_observed}, instructions);
  Estimates estimates(instructions, slots);
  std::vector<Slot> dropped;
  Slot newest = 0;
  size_t kept = 0;
  for (size_t i = 0; i < instructions.size();) {
    const uint8_t estimate = estimates.of(instructions[i]);
    const bool worthwhile = (estimate & Estimates::kLarge) && !(estimate & Estimates::kRecorded);
    while (!reads.empty() && reads[0].instruction <= i) reads.remove_prefix(1);
    if (worthwhile && may_begin(instructions, i, modes)) {
      Chain chain(*program, i, reads, slots, estimates, modes);
      if (const size_t length = chain.find(newest)) {
        dropped.clear();
        Instruction fused = chain.fuse(program, &dropped);
        for (size_t k = i; k < i + length; ++k) newest = std::max(newest, instructions[k].results[0]);
        if (i + length < instructions.size()) {
          Instruction& next = instructions[i + length];
          next.release = merged(program->memory(), next.release, dropped, chain);
        } else {
          program->set_release(merged(program->memory(), program->release(), dropped, chain));
        }
        estimates.add(fused, estimate);
        instructions[kept++] = fused;
        i += length;
        continue;
      }
    }
    estimates.add(instructions[i], estimate);
    for (Slot slot : instructions[i].results) newest = std::max(newest, slot);
    if (kept != i) instructions[kept] = instructions[i];
    ++kept;
    ++i;
  }
  instructions.resize(kept);
}

}  // namespace tt
