#include "engine/program/passes/fuse_convolutions.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/program/passes/inferred_call.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/program/passes/writes.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

// An instruction's argument, or the default of its parameter.
const Arg& arg_of(const Instruction& instruction, size_t i) {
  return i < instruction.args.size() ? instruction.args[i] : instruction.op->params[i].default_value;
}

bool is_convolution(const Op& op) {
  return op.id == op_id::kConv1d || op.id == op_id::kConv2d || op.id == op_id::kConv3d || op.id == op_id::kConvolution;
}

bool is_number(const Arg& arg, double value) {
  return arg.is_real_number() && arg.to_double() == value && std::signbit(arg.to_double()) == std::signbit(value);
}

// The activation that fused_convolution has for the call; nothing if it has none.
std::optional<std::string_view> activation_of(const Instruction& call) {
  const auto with_default = [&](std::string_view name) {
    const double value = call.op->params[1].default_value.to_double();
    return is_number(arg_of(call, 1), value) ? std::optional(name) : std::nullopt;
  };
  switch (call.op->id) {
    case op_id::kRelu: return "relu";
    case op_id::kRelu6: return "relu6";
    case op_id::kHardswish: return "hardswish";
    case op_id::kHardsigmoid: return "hardsigmoid";
    case op_id::kSilu: return "silu";
    case op_id::kGeluErf: return "gelu";
    case op_id::kGeluTanh: return "gelu_tanh";
    case op_id::kMish: return "mish";
    case op_id::kSigmoid: return "sigmoid";
    case op_id::kTanh: return "tanh";
    case op_id::kLeakyRelu: return with_default("leaky_relu");
    case op_id::kElu: return with_default("elu");
    case op_id::kGelu: {
      const Arg& approximate = arg_of(call, 1);
      if (approximate.kind != Arg::Kind::kString) return std::nullopt;
      return approximate.string() == "tanh" ? "gelu_tanh" : "gelu";
    }
    case op_id::kHardtanh:
      return is_number(arg_of(call, 1), 0) && is_number(arg_of(call, 2), 6) ? std::optional<std::string_view>("relu6")
                                                                            : std::nullopt;
    default: return std::nullopt;
  }
}

class Fusion {
 public:
  // Instructions in `taken` belong to another convolution.
  Fusion(const Program& program, const ProgramTypes& types, const UseDefs& uses, const std::vector<bool>& taken)
      : program_(program), types_(types), uses_(uses), taken_(taken) {}

  // Finds what follows the convolution `index`, as far as one call can compute it. Returns those instructions.
  std::vector<size_t> find(size_t index) {
    const Instruction& first = program_.instructions()[index];
    const auto has_kind = [&](size_t i, Arg::Kind kind) { return arg_of(first, i).kind == kind; };
    if (!has_kind(0, Arg::Kind::kSlot) || !has_kind(1, Arg::Kind::kSlot)) return {};
    for (size_t i = 3; i < 6; ++i) {
      if (!has_kind(i, Arg::Kind::kInts)) return {};
    }
    const TensorMeta& result = types_.of(first.results[0]);
    const bool has_dtype = result.dtype == DType::kFloat32 || result.dtype == DType::kFloat64;
    const bool is_batch = types_.of(first.args[0].slot).dim() == types_.of(first.args[1].slot).dim();
    if (!has_dtype || !is_batch || result.requires_grad || result.device.type != DeviceType::kCPU) return {};
    std::vector<size_t> found;
    enum { kNorm, kSum, kActivation, kEnd } next = kNorm;
    while (next != kEnd) {
      const Slot value = program_.instructions()[found.empty() ? index : found.back()].results[0];
      const UseDefs::Name* name = uses_.find(value);
      if (name->is_output || name->uses.size() != 1) break;
      const auto user = static_cast<size_t>(name->uses[0]);
      const Instruction& call = program_.instructions()[user];
      if (taken_[user] || call.flags != first.flags || call.results.size() != 1 ||
          !is_same(types_.of(call.results[0]), result))
        break;
      if (next == kNorm && take_norm(call, value)) {
        next = kSum;
      } else if (next <= kSum && take_sum(call, value, result)) {
        next = kActivation;
      } else if (const auto activation = activation_of(call)) {
        activation_ = *activation;
        next = kEnd;
      } else {
        break;
      }
      found.push_back(user);
    }
    return found;
  }

  // The arguments of fused_convolution for the instructions that find() has found.
  std::vector<Arg> args(const Instruction& convolution) {
    const auto space = static_cast<size_t>(types_.of(convolution.args[0].slot).dim()) - 2;
    std::vector<Arg> args = {convolution.args[0], convolution.args[1], arg_of(convolution, 2)};
    for (size_t i = 0; i < 3; ++i) {  // stride, padding, dilation
      const absl::Span<const int64_t> list = arg_of(convolution, 3 + i).ints();
      lists_[i].assign(list.begin(), list.end());
      if (list.size() == 1) lists_[i].assign(space, list[0]);
      args.push_back(Arg(absl::MakeConstSpan(lists_[i])));
    }
    args.push_back(arg_of(convolution, 6));
    args.insert(args.end(), norm_.begin(), norm_.end());
    if (norm_.empty()) args.insert(args.end(), {Arg(), Arg(), Arg(), Arg(), Arg(0.0)});
    args.push_back(added_ == 0 ? Arg() : slot_arg(added_));
    args.push_back(Arg(activation_));
    return args;
  }

 private:
  static bool is_same(const TensorMeta& a, const TensorMeta& b) {
    return a.sizes == b.sizes && a.strides == b.strides && a.dtype == b.dtype && a.device == b.device;
  }

  // batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
  bool take_norm(const Instruction& call, Slot value) {
    if (call.op->id != op_id::kBatchNorm || arg_of(call, 5).to_bool() || arg_of(call, 0).slot != value) return false;
    for (size_t i = 1; i < 5; ++i) {
      const Arg& statistic = arg_of(call, i);
      if (statistic.is_none() && i > 2) continue;
      if (statistic.kind != Arg::Kind::kSlot || statistic.slot == value) return false;
      if (types_.of(statistic.slot).dtype != types_.of(value).dtype) return false;
    }
    norm_ = {call.args[1], call.args[2], arg_of(call, 3), arg_of(call, 4), arg_of(call, 7)};
    return true;
  }

  // add(input, other, alpha=1) of two tensors of the result's size.
  bool take_sum(const Instruction& call, Slot value, const TensorMeta& result) {
    if (call.op->id != op_id::kAdd) return false;
    const Arg &a = arg_of(call, 0), &b = arg_of(call, 1);
    if (a.kind != Arg::Kind::kSlot || b.kind != Arg::Kind::kSlot || a.slot == b.slot) return false;
    const Arg& alpha = arg_of(call, 2);
    if (!alpha.is_real_number() || alpha.to_double() != 1) return false;
    const Slot other = a.slot == value ? b.slot : a.slot;
    const TensorMeta& added = types_.of(other);
    if (added.sizes != result.sizes || added.dtype != result.dtype || added.is_number) return false;
    added_ = other;
    return true;
  }

  const Program& program_;
  const ProgramTypes& types_;
  const UseDefs& uses_;
  const std::vector<bool>& taken_;
  std::vector<Arg> norm_;  // running_mean, running_var, weight, bias, eps; empty without a norm
  Slot added_ = 0;
  std::string_view activation_ = "none";
  std::vector<int64_t> lists_[3];
};

}  // namespace

bool has_convolution(const Program& program) {
  return std::any_of(program.instructions().begin(), program.instructions().end(),
                     [](const Instruction& call) { return is_convolution(*call.op); });
}

void fuse_convolutions(Program* program, const ProgramTypes& types) {
  if (writes_in_place(*program)) return;
  static const Op& fused = *find_op(op_id::kFusedConvolution);
  const Program before = *program;  // the instructions that are replaced are unused afterwards
  const UseDefs uses(before);
  std::vector<bool> taken(before.instructions().size());
  for (size_t i = 0; i < before.instructions().size(); ++i) {
    const Instruction& convolution = before.instructions()[i];
    if (!is_convolution(*convolution.op)) continue;
    Fusion fusion(before, types, uses, taken);
    const std::vector<size_t> following = fusion.find(i);
    if (following.empty()) continue;
    const std::vector<Arg> args = fusion.args(convolution);
    Instruction& replaced = program->mutable_instructions()[following.back()];
    if (!has_result(types.of(replaced.results[0]), fused, args, convolution.flags, types)) continue;
    for (size_t index : following) taken[index] = true;
    replaced.op = &fused;
    replaced.args = program->copy_args(args);
    replaced.site = convolution.site;
  }
  remove_unused(program);
}

}  // namespace tt
