#include "engine/schema/autocast.h"

#include <string_view>
#include <utility>

#include "engine/schema/error.h"

namespace tt {
namespace {

using enum AutocastPolicy;

struct Policies {
  AutocastPolicy cpu = kNone, cuda = kNone;
};

struct Row {
  Policies policies;
  std::vector<std::string_view> ops;
};

// PyTorch's lists. An operator that PyTorch computes by calling others has the policy that these have together.
// clang-format off
const std::vector<Row>& rows() {
  static const auto* rows = new std::vector<Row>{
      {{kLower, kLower},
       {"matmul", "mm", "bmm", "linear", "addmm", "addbmm", "baddbmm", "convolution", "conv1d", "conv2d", "conv3d",
        "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "prelu", "attention", "lstm", "rnn",
        "rnn_tanh_cell", "rnn_relu_cell"}},
      {{kNone, kLower}, {"mv", "addmv", "lstm_cell"}},
      {{kLower, kNone}, {"addmm_activation"}},
      {{kLower, kWidest}, {"inner"}},
      {{kWidest, kLower}, {"gru", "gru_cell"}},
      {{kWidest, kFloat32}, {"dist"}},
      {{kFloat32, kFloat32},
       {"nll_loss", "kl_div", "l1_loss", "smooth_l1_loss", "huber_loss", "mse_loss",
        "binary_cross_entropy_with_logits", "cdist", "cross_entropy"}},
      {{kNone, kFloat32},
       {"acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt",
        "sinh", "tan", "pow", "softplus", "layer_norm", "rms_norm", "group_norm", "cosine_similarity",
        "logsumexp", "interpolate", "norm", "norm_named"}},
      {{kFloat32, kRefused}, {"binary_cross_entropy"}},
      {{kFloat32, kFloat32Result}, {"prod"}},
      {{kNone, kFloat32Result}, {"softmax", "log_softmax", "cumprod", "cumsum", "vector_norm", "sum"}},
      {{kFloat32, kNone},
       {"polar", "quantile", "nanquantile", "trace", "view_as_complex", "avg_pool3d", "max_pool3d",
        "adaptive_avg_pool3d", "fake_quantize_per_tensor_affine", "ctc_loss_forward"}},
      {{kFloat32, kWidest}, {"grid_sample"}},
      {{kNone, kWidest}, {"addcdiv", "addcmul", "atan2", "cross", "dot", "index_put", "scatter_add"}},
      {{kWidest, kNone}, {"cat", "stack", "index_copy"}},
  };
  return *rows;
}
// clang-format on

const std::vector<Policies>& policies_by_id() {
  static const auto* table = [] {
    auto* made = new std::vector<Policies>();
    for (const Row& row : rows()) {
      for (std::string_view name : row.ops) {
        const Op* op = find_op(name);
        check(op != nullptr, "autocast: unknown operator ", name);
        if (made->size() <= op->id) made->resize(op->id + 1u);
        (*made)[op->id] = row.policies;
      }
    }
    return made;
  }();
  return *table;
}

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

// Returns float32 if a tensor has it, else the lower precision.
DType widest(const Op& op, Args args, DeviceType device, DType lower) {
  DType result = lower;
  for_each_tensor(args, [&](const TensorMeta& t) {
    if (!may_cast(t, device)) return;
    check(t.dtype == DType::kFloat32 || t.dtype == lower, "[", op.name,
          "] autocast expected tensors of dtype float32, ", "float64 or ", name(lower), ", got ", name(t.dtype));
    if (t.dtype == DType::kFloat32) result = DType::kFloat32;
  });
  return result;
}

// Whether the call is a product of two vectors, which is not cast on a CPU.
bool is_dot(const Op& op, Args args) {
  return op.name == "inner" && args[0].kind == Arg::Kind::kTensor && args[1].kind == Arg::Kind::kTensor &&
         args[0].tensor->dim() == 1 && args[1].tensor->dim() == 1;
}

// The arguments that decide the dtype: for a GRU its state, whose dtype the result has.
Args deciding(const Op& op, Args args) { return op.name == "gru" || op.name == "gru_cell" ? args.subspan(1, 1) : args; }

int dtype_param(const Op& op, Args args) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (op.params[i].name == "dtype") return args[i].is_none() ? static_cast<int>(i) : -1;
  }
  return -1;
}

}  // namespace

AutocastPolicy autocast_policy(const Op& op, DeviceType device) {
  const std::vector<Policies>& table = policies_by_id();
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
    switch (policy) {
      case kLower: rule.dtype = *lower; break;
      case kFloat32: rule.dtype = DType::kFloat32; break;
      case kWidest: rule.dtype = widest(op, deciding(op, args), device, *lower); break;
      case kFloat32Result: rule.float32_param = first_is_cast ? dtype_param(op, args) : -1; break;
      case kRefused:
      case kNone: break;
    }
    return rule;
  }
  return rule;
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
}

}  // namespace tt
