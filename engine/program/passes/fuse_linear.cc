#include "engine/program/passes/fuse_linear.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "engine/program/passes/inferred_call.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/program/passes/writes.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

// Multiplications below which the kernel of the product has no epilogue (kernels/cpu/blas/product.cc).
constexpr double kMinWork = 64 * 64 * 64;

// An instruction's argument, or the default of its parameter.
const Arg& arg_of(const Instruction& instruction, size_t i) {
  return i < instruction.args.size() ? instruction.args[i] : instruction.op->params[i].default_value;
}

// The activation that fused_linear has for the call; "" if it has none.
std::string_view activation_of(const Instruction& call) {
  switch (call.op->id) {
    case op_id::kGeluErf: return "gelu";
    case op_id::kGeluTanh: return "gelu_tanh";
    case op_id::kSilu: return "silu";
    case op_id::kRelu: return "relu";
    case op_id::kSigmoid: return "sigmoid";
    case op_id::kTanh: return "tanh";
    case op_id::kGelu: {
      const Arg& approximate = arg_of(call, 1);
      if (approximate.kind != Arg::Kind::kString) return "";
      return approximate.string() == "tanh" ? "gelu_tanh" : approximate.string() == "none" ? "gelu" : "";
    }
    default: return "";
  }
}

class Fusion {
 public:
  Fusion(const Program& program, const ProgramTypes& types, const UseDefs& uses)
      : program_(program), types_(types), uses_(uses) {}

  // Finds what follows the linear layer `index`, as far as one call can compute it. Returns the last of these
  // instructions; `index` if there are none.
  size_t find(size_t index) {
    const Instruction& first = program_.instructions()[index];
    if (!is_supported(first)) return index;
    const TensorMeta& result = types_.of(first.results[0]);
    size_t last = index;
    for (bool is_done = false; !is_done;) {
      const Slot value = program_.instructions()[last].results[0];
      const UseDefs::Name* name = uses_.find(value);
      if (name->is_output || name->uses.size() != 1) break;
      const auto user = static_cast<size_t>(name->uses[0]);
      const Instruction& call = program_.instructions()[user];
      if (call.flags != first.flags || call.results.size() != 1 || !is_same(types_.of(call.results[0]), result)) break;
      activation_ = activation_of(call);
      if (!activation_.empty()) {
        is_done = true;
      } else if (added_ != 0 || !take_sum(call, value, result)) {
        break;
      }
      last = user;
    }
    if (activation_.empty()) activation_ = "none";
    return last;
  }

  // The arguments of fused_linear for what find() has found.
  std::vector<Arg> args(const Instruction& linear) const {
    return {linear.args[0], linear.args[1], arg_of(linear, 2), added_ == 0 ? Arg() : slot_arg(added_),
            Arg(activation_)};
  }

 private:
  static bool is_same(const TensorMeta& a, const TensorMeta& b) {
    return a.sizes == b.sizes && a.strides == b.strides && a.dtype == b.dtype && a.device == b.device;
  }

  bool is_supported(const Instruction& linear) const {
    if (linear.op->id != op_id::kLinear || linear.results.size() != 1) return false;
    if (arg_of(linear, 0).kind != Arg::Kind::kSlot || arg_of(linear, 1).kind != Arg::Kind::kSlot) return false;
    const TensorMeta &result = types_.of(linear.results[0]), &weight = types_.of(linear.args[1].slot);
    if (result.dtype != DType::kFloat32 || result.device.type != DeviceType::kCPU || result.requires_grad) return false;
    if (weight.dim() != 2 || weight.sizes[0] < 2 || result.numel() <= weight.sizes[0]) return false;
    return static_cast<double>(result.numel()) * static_cast<double>(weight.sizes[1]) > kMinWork;
  }

  // add(input, other, alpha=1) of two tensors of the result's layout.
  bool take_sum(const Instruction& call, Slot value, const TensorMeta& result) {
    if (call.op->id != op_id::kAdd) return false;
    const Arg &a = arg_of(call, 0), &b = arg_of(call, 1), &alpha = arg_of(call, 2);
    if (a.kind != Arg::Kind::kSlot || b.kind != Arg::Kind::kSlot || a.slot == b.slot) return false;
    if (!alpha.is_real_number() || alpha.to_double() != 1) return false;
    const Slot other = a.slot == value ? b.slot : a.slot;
    if (!is_same(types_.of(other), result) || types_.of(other).is_number) return false;
    added_ = other;
    return true;
  }

  const Program& program_;
  const ProgramTypes& types_;
  const UseDefs& uses_;
  Slot added_ = 0;
  std::string_view activation_;
};

}  // namespace

bool has_linear(const Program& program) {
  return std::any_of(program.instructions().begin(), program.instructions().end(),
                     [](const Instruction& call) { return call.op->id == op_id::kLinear; });
}

void fuse_linear(Program* program, const ProgramTypes& types) {
  if (writes_in_place(*program)) return;
  static const Op& fused = *find_op(op_id::kFusedLinear);
  const Program before = *program;  // the instructions that are replaced are unused afterwards
  const UseDefs uses(before);
  std::vector<bool> taken(before.instructions().size());
  for (size_t i = 0; i < before.instructions().size(); ++i) {
    if (before.instructions()[i].op->id != op_id::kLinear) continue;
    Fusion fusion(before, types, uses);
    const size_t last = fusion.find(i);
    if (last == i || taken[last]) continue;
    const Instruction& linear = before.instructions()[i];
    const std::vector<Arg> args = fusion.args(linear);
    Instruction& replaced = program->mutable_instructions()[last];
    if (!has_result(types.of(replaced.results[0]), fused, args, linear.flags, types)) continue;
    taken[last] = true;
    replaced.op = &fused;
    replaced.args = program->copy_args(args);
    replaced.site = linear.site;
  }
  remove_unused(program);
}

}  // namespace tt
