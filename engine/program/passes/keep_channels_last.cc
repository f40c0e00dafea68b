#include "engine/program/passes/keep_channels_last.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/program/passes/renamed_args.h"
#include "engine/program/passes/writes.h"
#include "engine/schema/error.h"
#include "engine/schema/layout.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

bool is_convolution(const Op& op) {
  return op.id == op_id::kConv2d || op.id == op_id::kConvolution || op.id == op_id::kFusedConvolution ||
         op.id == op_id::kInt8ConvolutionQuantized;
}

// Whether the result has the layout of the tensors that the call reads.
bool keeps_layout(const Instruction& call) {
  switch (call.op->id) {
    case op_id::kBatchNorm:
    case op_id::kMaxPool2d:
    case op_id::kAvgPool2d:
    case op_id::kAdaptiveAvgPool2d: return true;
    default: return call.op->is_pointwise && call.results.size() == 1;
  }
}

// Whether the call reads any layout without a copy, and the layout of its result does not depend on it. The sums are
// added in another order.
bool takes_any_layout(const Instruction& call) { return call.op->id == op_id::kMean; }

bool is_last(const TensorMeta& meta) { return is_channels_last(meta.sizes, meta.strides); }

class Layouts {
 public:
  Layouts(const Program& program, const ProgramTypes& types, size_t inputs, bool exact)
      : types_(types), exact_(exact), largest_(inputs) {
    for (const Instruction& instruction : program.instructions()) {
      for (Slot slot : instruction.results) largest_ = std::max(largest_, slot);
    }
  }

  void add(const Instruction& call) {
    const auto reads = [&](size_t i) { return call.args.size() > i && call.args[i].kind == Arg::Kind::kSlot; };
    const bool convolves = is_convolution(*call.op) && reads(0) && reads(1) && is_image(call.args[0].slot);
    if (!exact_ && takes_any_layout(call)) {
      append(call, [&](Slot slot) {
        const auto found = last_.find(slot);
        uses_ += found != last_.end();
        return found == last_.end() ? slot : found->second;
      });
      return;
    }
    if (call.results.empty() || !is_image(call.results[0]) || !(convolves || keeps_last(call))) {
      append(call, [&](Slot slot) { return plain(slot, call); });
      return;
    }
    for (const Arg& arg : call.args) {
      for (Slot slot : names_in(arg)) uses_ += slot != 0 && last_.contains(slot);
    }
    // The weights of a convolution have a layout of their own.
    const Slot weight = convolves ? call.args[1].slot : 0;
    append(call, [&](Slot slot) { return is_image(slot) && slot != weight ? last(slot, call) : plain(slot, call); });
    const Slot name = new_name();
    last_[call.results[0]] = name;
    made_.back().results = program_.memory().copy(absl::MakeConstSpan(&name, 1));
  }

  // The Program, if it is one that has gained.
  std::optional<Program> finish(const Program& before, absl::Span<const TensorMeta* const> metas) {
    std::vector<Slot> outputs;
    for (Slot slot : before.outputs()) {
      outputs.push_back(last_.contains(slot) ? plain(slot, before.instructions().back()) : slot);
    }
    if (uses_ == 0 || largest_ > Program::kMaxNames) return std::nullopt;
    program_.mutable_instructions() = std::move(made_);
    program_.set_outputs(outputs);
    remove_unused(&program_);
    const ProgramTypes now(program_, metas, /*grad_enabled=*/false);
    const auto has_layout = [&](Slot name) { return !now.contains(name) || is_last(now.of(name)); };
    if (!std::all_of(last_.begin(), last_.end(), [&](const auto& entry) { return has_layout(entry.second); }))
      return std::nullopt;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const TensorMeta &a = now.of(outputs[i]), &b = types_.of(before.outputs()[i]);
      if (a.sizes != b.sizes || a.strides != b.strides || a.dtype != b.dtype) return std::nullopt;
    }
    return std::move(program_);
  }

 private:
  // Whether the value has two layouts that differ, and was to have the contiguous one.
  bool is_image(Slot slot) const {
    if (!types_.contains(slot)) return false;
    const TensorMeta& meta = types_.of(slot);
    const bool has_dtype = meta.dtype == DType::kFloat32 || meta.dtype == DType::kUInt8 || meta.dtype == DType::kInt8;
    return meta.dim() == 4 && has_dtype && meta.device.type == DeviceType::kCPU && !meta.requires_grad &&
           meta.numel() > 0 && meta.is_contiguous() && !is_last(meta);
  }

  bool keeps_last(const Instruction& call) const {
    if (!keeps_layout(call)) return false;
    return std::any_of(call.args.begin(), call.args.end(), [&](const Arg& arg) {
      const absl::Span<const Slot> names = names_in(arg);
      return std::any_of(names.begin(), names.end(), [&](Slot slot) { return last_.contains(slot); });
    });
  }

  Slot new_name() { return ++largest_; }

  // Adds a call of `op` with one tensor, for the instruction `user`; returns its result.
  Slot convert(uint16_t op, Slot from, absl::Span<const int64_t> dims, const Instruction& user) {
    const Arg args[] = {slot_arg(from), Arg(dims)};
    Instruction made;
    made.op = find_op(op);
    made.args = program_.copy_args(Args(args, dims.empty() ? 1 : 2));
    const Slot name = new_name();
    made.results = program_.memory().copy(absl::MakeConstSpan(&name, 1));
    made.flags = user.flags;
    made.site = user.site;
    made.count = 0;
    made_.push_back(made);
    return name;
  }

  // The name of the value in the layout that it has without the pass, and channels last.
  Slot plain(Slot slot, const Instruction& user) {
    const auto found = last_.find(slot);
    if (found == last_.end()) return slot;
    const auto known = plain_.find(slot);
    return known != plain_.end() ? known->second : plain_[slot] = convert(op_id::kContiguous, found->second, {}, user);
  }
  Slot last(Slot slot, const Instruction& user) {
    constexpr int64_t kThere[] = {0, 2, 3, 1}, kBack[] = {0, 3, 1, 2};
    if (const auto found = last_.find(slot); found != last_.end()) return found->second;
    const Slot rows = convert(op_id::kContiguous, convert(op_id::kPermute, slot, kThere, user), {}, user);
    const Slot name = convert(op_id::kPermute, rows, kBack, user);
    plain_[slot] = slot;
    return last_[slot] = name;
  }

  template <typename NameOf>
  void append(const Instruction& call, NameOf name_of) {
    Instruction made = call;
    // Conversions come first. The lists and strings are copied, because they belong to another Program.
    made.args = program_.copy_args(renamed_args(call.args, name_of, &program_.memory()));
    made.results = program_.memory().copy(call.results);
    made.release = {};
    made_.push_back(made);
  }

  const ProgramTypes& types_;
  const bool exact_;
  Slot largest_;
  size_t uses_ = 0;  // of results that are channels last, as they are
  Program program_;  // owns what made_ points to
  std::vector<Instruction> made_;
  absl::flat_hash_map<Slot, Slot> last_;   // of a value: its name with channels last
  absl::flat_hash_map<Slot, Slot> plain_;  // of such a value: its name in the other layout
};

}  // namespace

Program keep_channels_last(const Program& program, const ProgramTypes& types, absl::Span<const TensorMeta* const> metas,
                           bool exact) {
  if (writes_in_place(program)) return program;
  try {
    Layouts layouts(program, types, metas.size(), exact);
    for (const Instruction& call : program.instructions()) layouts.add(call);
    if (std::optional<Program> made = layouts.finish(program, metas)) return *std::move(made);
  } catch (const Error&) {  // a rule rejects a call with the other layout, as a view's may
  }
  return program;
}

}  // namespace tt
