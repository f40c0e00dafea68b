#include "engine/schema/autocast.h"

#include "engine/schema/autocast_result.h"
#include "engine/schema/autocast_table.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

using enum AutocastPolicy;

template <typename F>
void for_each_tensor(Args args, F f) {
  for (const Arg& arg : args) {
    if (arg.kind == Arg::Kind::kTensor) f(*arg.tensor);
    if (arg.kind != Arg::Kind::kTensors) continue;
    for (const TensorMeta* t : arg.list()) {
      if (t) f(*t);
    }
  }
}

bool is_on(Args args, DeviceType device) {
  bool found = false;
  for_each_tensor(args, [&](const TensorMeta& t) { found |= t.device.type == device && !t.is_number; });
  return found;
}

bool may_cast(const TensorMeta& t, DeviceType device) {
  return t.device.type == device && is_floating(t.dtype) && t.dtype != DType::kFloat64 && !t.is_number;
}

// Returns float32 if a tensor has it, else the lower precision. As in PyTorch, a tensor of another dtype is an error
// unless a tensor of float32 precedes it.
DType widest(const Op& op, Args args, DeviceType device, DType lower) {
  DType result = lower;
  for_each_tensor(args, [&](const TensorMeta& t) {
    if (!may_cast(t, device) || result == DType::kFloat32) return;
    check(t.dtype == DType::kFloat32 || t.dtype == lower, "[", op.name,
          "] autocast expected tensors of dtype float32, ", "float64 or ", name(lower), ", got ", name(t.dtype));
    result = t.dtype;
  });
  return result;
}

// Whether the call is a product of two vectors, which is not cast on a CPU.
bool is_dot(const Op& op, Args args) {
  return op.name == "inner" && args[0].kind == Arg::Kind::kTensor && args[1].kind == Arg::Kind::kTensor &&
         args[0].tensor->dim() == 1 && args[1].tensor->dim() == 1;
}

// Whether a recurrent layer on a CPU adds gates of the lower precision to states that keep their dtype. PyTorch
// computes an LSTM over sequences of one length, of float32 or bfloat16, in the lower precision throughout.
bool keeps_states(const Op& op, Args args) {
  if (op.name == "gru" || op.name == "gru_cell") return true;
  if (op.name != "lstm" || args[0].kind != Arg::Kind::kTensor || args[1].list().size() != 2) return false;
  const TensorMeta &h = *args[1].list()[0], &c = *args[1].list()[1];
  if (h.sizes != c.sizes) return false;  // with a projection
  const DType input = args[0].tensor->dtype;
  return !args[3].ints().empty() || (input != DType::kFloat32 && input != DType::kBFloat16);
}

// The dtype of the results of such a layer: that of the state which is added to gates, an LSTM's c or a GRU's h.
DType promoted_with_state(Args args, DType lower) {
  const TensorMeta* state = args[1].kind == Arg::Kind::kTensors ? args[1].list().back() : args[1].tensor;
  return state != nullptr && may_cast(*state, DeviceType::kCPU) ? promote(lower, state->dtype) : lower;
}

int dtype_param(const Op& op, Args args) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (op.params[i].name == "dtype") return args[i].is_none() ? static_cast<int>(i) : -1;
  }
  return -1;
}

}  // namespace

AutocastPolicy autocast_policy(const Op& op, DeviceType device) {
  const absl::Span<const AutocastPolicies> table = autocast_table();
  if (op.id >= table.size()) return kNone;
  return device == DeviceType::kCUDA ? table[op.id].cuda : device == DeviceType::kCPU ? table[op.id].cpu : kNone;
}

bool has_autocast_policy(const Op& op) {
  return autocast_policy(op, DeviceType::kCPU) != kNone || autocast_policy(op, DeviceType::kCUDA) != kNone;
}

AutocastRule autocast_rule(const Op& op, Args args, const AutocastState& state) {
  AutocastRule rule;
  // A call on a GPU may have numbers on the CPU, so GPUs come first.
  for (DeviceType device : {DeviceType::kCUDA, DeviceType::kCPU}) {
    const std::optional<DType> lower = state.dtype(device);
    const AutocastPolicy policy = lower ? autocast_policy(op, device) : kNone;
    if (policy == kNone || !is_on(args, device) || (device == DeviceType::kCPU && is_dot(op, args))) continue;
    rule.device = device;
    check(policy != kRefused, "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n",
          "Many models use a sigmoid layer right before the binary cross entropy layer. In this case, combine the two ",
          "layers using torch.nn.functional.binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss. ",
          "binary_cross_entropy_with_logits and BCEWithLogits are safe to autocast.");
    const bool first_is_cast = args[0].kind == Arg::Kind::kTensor && may_cast(*args[0].tensor, device);
    if (device == DeviceType::kCPU && keeps_states(op, args)) {
      rule.dtype = promoted_with_state(args, *lower);
      return rule;
    }
    switch (policy) {
      case kLower: rule.dtype = *lower; break;
      case kFloat32:
      case kFloat32ToLower: rule.dtype = DType::kFloat32; break;
      case kWidest: rule.dtype = widest(op, args, device, *lower); break;
      case kFloat32Result: rule.float32_param = first_is_cast ? dtype_param(op, args) : -1; break;
      case kRefused:
      case kNone: break;
    }
    return rule;
  }
  return rule;
}

std::optional<DType> autocast_result(const Op& op, Args args, const AutocastState& state, DType dtype) {
  if (!is_floating(dtype) || dtype == DType::kFloat64) return {};
  for (DeviceType device : {DeviceType::kCUDA, DeviceType::kCPU}) {
    const std::optional<DType> lower = state.dtype(device);
    if (lower && autocast_policy(op, device) == kFloat32ToLower && is_on(args, device))
      return lower == dtype ? std::nullopt : lower;
  }
  return {};
}

void infer_with_autocast(const Op& op, Args args, const AutocastState& state, bool grad_enabled, Inference* out) {
  const AutocastRule rule = autocast_rule(op, args, state);
  std::deque<TensorMeta> metas;  // addresses must stay valid
  const AutocastArgs changed(rule, args, [&](const TensorMeta* t) {
    TensorMeta& meta = metas.emplace_back(*t);
    meta.dtype = *rule.dtype;
    meta.strides = contiguous_strides(meta.sizes);
    meta.offset = 0;
    return &meta;
  });
  infer(op, changed.args(), grad_enabled, out);
  for (TensorMeta& meta : out->outputs) {
    if (const std::optional<DType> dtype = autocast_result(op, args, state, meta.dtype)) meta.dtype = *dtype;
  }
}

}  // namespace tt
