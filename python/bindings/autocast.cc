#include "python/bindings/autocast.h"

#include <optional>

#include "absl/container/flat_hash_map.h"
#include "engine/schema/op_ids.h"

namespace tt::python {
namespace {

enum class Policy { kLower, kFloat, kWidest };

const absl::flat_hash_map<uint16_t, Policy>& policies() {
  static const auto* table = [] {
    auto* made = new absl::flat_hash_map<uint16_t, Policy>();
    const auto add = [&](Policy policy, std::initializer_list<std::string_view> names) {
      for (std::string_view name : names) {
        if (const Op* op = find_op(name)) made->emplace(op->id, policy);
      }
    };
    // clang-format would write one name per line.
    // clang-format off
    add(Policy::kLower, {"matmul", "mm", "bmm", "mv", "linear", "addmm", "addmv", "addbmm", "baddbmm", "conv1d", "conv2d",
                         "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "attention", "prelu",
                         "lstm", "gru", "rnn", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"});
    add(Policy::kFloat, {"acos", "asin", "binary_cross_entropy", "binary_cross_entropy_with_logits", "cdist", "cosh",
                         "cosine_similarity", "cross_entropy", "cumprod", "cumsum", "dist", "erfinv", "exp", "expm1",
                         "group_norm", "huber_loss", "kl_div", "l1_loss", "layer_norm", "log", "log10", "log1p", "log2",
                         "log_softmax", "mse_loss", "nll_loss", "norm", "norm_named", "vector_norm", "pow", "prod",
                         "reciprocal", "rms_norm", "rsqrt", "sinh", "smooth_l1_loss", "softmax", "softplus", "sum", "tan",
                         "logsumexp", "ctc_loss_forward"});
    // clang-format on
    add(Policy::kWidest, {"addcdiv", "addcmul", "atan2", "cat", "cross", "dot", "grid_sample", "index_add", "lerp",
                          "scatter_add", "scatter", "stack", "hstack", "vstack"});
    return made;
  }();
  return *table;
}

bool is_cast(const TensorMeta& t) {
  return is_floating(t.dtype) && t.dtype != DType::kFloat64 && Mode::current().autocast_dtype(t.device.type);
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

// Returns the dtype to which the call's tensors are cast; nullopt if no tensor is cast.
std::optional<DType> cast_dtype(Policy policy, Args args) {
  std::optional<DType> lower;
  DType widest = DType::kBool;
  for_each_tensor(args, [&](const TensorMeta& t) {
    if (!is_cast(t)) return;
    lower = Mode::current().autocast_dtype(t.device.type);
    widest = widest == DType::kBool || widest == t.dtype ? t.dtype : DType::kFloat32;
  });
  if (!lower) return std::nullopt;
  return policy == Policy::kLower ? *lower : policy == Policy::kFloat ? DType::kFloat32 : widest;
}

}  // namespace

AutocastArgs::AutocastArgs(const Op& op, Args args, client::Session& session) : args_(args.begin(), args.end()) {
  const auto policy = policies().find(op.id);
  if (policy == policies().end()) return;
  const std::optional<DType> dtype = cast_dtype(policy->second, args);
  if (!dtype) return;
  for (Arg& arg : args_) {
    if (arg.kind == Arg::Kind::kTensor) {
      arg = Arg(cast(arg.tensor, *dtype, session));
    } else if (arg.kind == Arg::Kind::kTensors) {
      auto& list = lists_.emplace_back();
      for (const TensorMeta* t : arg.list()) list.push_back(t ? cast(t, *dtype, session) : t);
      arg = Arg(absl::MakeConstSpan(list));
    }
  }
}

const TensorMeta* AutocastArgs::cast(const TensorMeta* tensor, DType dtype, client::Session& session) {
  if (!is_cast(*tensor) || tensor->dtype == dtype) return tensor;
  const Arg args[] = {Arg(tensor), Arg(dtype)};
  made_.push_back(session.call(*find_op(op_id::kToDtype), args, call_options(session))[0]);
  return made_.back().get();
}

}  // namespace tt::python
