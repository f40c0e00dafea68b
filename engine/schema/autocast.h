// Autocast: the rules by which mixed precision casts the tensors of a call. The client infers results by the same rules
// as the engine, so creating a tensor does not wait.
//
// An operator has a policy per device type, as in PyTorch's lists. Only floating-point tensors of the device type are
// cast; float64 and numbers passed for tensors are not. Calls that write to existing tensors are never changed.
// Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/schema/op.h"

namespace tt {

// A session's or a thread's settings.
struct AutocastState {
  // The lower precision, float16 or bfloat16, on CPUs and on GPUs; nullopt if autocast is off.
  std::optional<DType> cpu, cuda;
  bool cache = true;  // keep casts of parameters until clear_autocast_cache

  bool enabled() const { return cpu || cuda; }
  std::optional<DType> dtype(DeviceType device) const {
    return device == DeviceType::kCUDA ? cuda : device == DeviceType::kCPU ? cpu : std::nullopt;
  }
  friend bool operator==(const AutocastState&, const AutocastState&) = default;
};

enum class AutocastPolicy : uint8_t {
  kNone,
  kLower,           // tensors are cast to the lower precision
  kFloat32,         // tensors are cast to float32
  kFloat32ToLower,  // tensors are cast to float32, and floating results to the lower precision
  kFloat32Result,   // the parameter `dtype` becomes float32 if the caller does not give it; no tensor is cast
  kWidest,          // tensors are cast to float32 if one of them is float32
  kRefused,         // the call throws, because its results in lower precision are not useful
};

// The operator's policy on CPUs or GPUs; kNone for other devices.
AutocastPolicy autocast_policy(const Op& op, DeviceType device);
// Whether the operator has a policy on some device.
bool has_autocast_policy(const Op& op);

// The changes of one call.
struct AutocastRule {
  DeviceType device = DeviceType::kCPU;  // tensors of this device type are cast
  std::optional<DType> dtype;            // to this dtype; nullopt: no tensor is cast
  int float32_param = -1;                // this parameter becomes DType::kFloat32

  bool changes() const { return dtype || float32_param >= 0; }
  bool casts(const TensorMeta& t) const {
    return dtype && t.dtype != *dtype && t.device.type == device && is_floating(t.dtype) &&
           t.dtype != DType::kFloat64 && !t.is_number;
  }
};
// Throws Error (RuntimeError) for kRefused, and for kWidest with tensors of several lower precisions.
AutocastRule autocast_rule(const Op& op, Args args, const AutocastState& state);

// A call's arguments after the changes. Owns lists, but not the tensors that `cast` returns.
class AutocastArgs {
 public:
  // Calls cast(tensor) for each tensor that the rule casts; the returned pointer replaces the tensor.
  template <typename Cast>
  AutocastArgs(const AutocastRule& rule, Args args, const Cast& cast) : args_(args.begin(), args.end()) {
    if (rule.float32_param >= 0) args_[static_cast<size_t>(rule.float32_param)] = Arg(DType::kFloat32);
    if (!rule.dtype) return;
    for (Arg& arg : args_) {
      if (arg.kind == Arg::Kind::kTensor && rule.casts(*arg.tensor)) {
        arg = Arg(static_cast<const TensorMeta*>(cast(arg.tensor)));
      } else if (arg.kind == Arg::Kind::kTensors) {
        std::vector<const TensorMeta*>& list = lists_.emplace_back(arg.list().begin(), arg.list().end());
        for (const TensorMeta*& t : list) {
          if (t && rule.casts(*t)) t = cast(t);
        }
        arg = Arg(absl::MakeConstSpan(list));
      }
    }
  }
  AutocastArgs(const AutocastArgs&) = delete;
  AutocastArgs& operator=(const AutocastArgs&) = delete;
  Args args() const { return args_; }

 private:
  absl::InlinedVector<Arg, 8> args_;
  std::deque<std::vector<const TensorMeta*>> lists_;
};

// Like infer(), for the call as autocast changes it.
void infer_with_autocast(const Op& op, Args args, const AutocastState& state, bool grad_enabled, Inference* out);

}  // namespace tt
