#include "kernels/plugin/fallback.h"

#include <atomic>
#include <deque>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/schema/error.h"
#include "kernels/plugin/copy.h"
#include "kernels/plugin/plugin.h"

namespace tt::plugin {
namespace {

std::atomic<bool> fallback_enabled{true};

bool same_elements(const Tensor& a, const Tensor& b) {
  return a.data() == b.data() && a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

// The address after the last element of a tensor that is not empty.
uintptr_t end_of(const Tensor& t) {
  int64_t last = 0;
  for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
  return reinterpret_cast<uintptr_t>(t.data()) + static_cast<uintptr_t>(last + 1) * item_size(t.dtype());
}

bool may_overlap(const Tensor& a, const Tensor& b) {
  return reinterpret_cast<uintptr_t>(a.data()) < end_of(b) && reinterpret_cast<uintptr_t>(b.data()) < end_of(a);
}

// The arguments of a call with copies on the CPU in place of the device's tensors. Arguments with the same elements
// share a copy. Throws Error (NotImplementedError) if an argument that is written partly overlaps another one.
class HostArguments {
 public:
  explicit HostArguments(const Call& call) {
    for (size_t i = 0; i < call.args.size(); ++i) args_.push_back(moved(call.op->params[i], call.args[i]));
    for (const auto& [storage, copies] : copies_) check_overlap(*call.op, copies);
  }
  Args args() const { return args_; }
  // Copies what the kernel has written back to the device.
  void finish() {
    for (const auto& [storage, copies] : copies_) {
      for (const Copy& copy : copies) {
        if (copy.is_written) store(copy.host, copy.tensor);
      }
    }
  }

 private:
  struct Copy {
    Tensor tensor, host;
    bool is_written;
  };

  Arg moved(const Param& param, const Arg& arg) {
    if (arg.kind == Arg::Kind::kTensor) return Arg(fetched(param, arg.tensor));
    if (param.type == ParamType::kDevice && !arg.is_none()) {
      return is_plugin(decode_device(arg.integer).type) ? Arg(Device{}) : arg;
    }
    if (arg.kind != Arg::Kind::kTensors) return arg;
    std::vector<const TensorMeta*>& list = lists_.emplace_back();
    for (const TensorMeta* t : arg.list()) list.push_back(fetched(param, t));
    return Arg(absl::Span<const TensorMeta* const>(list));
  }
  const TensorMeta* fetched(const Param& param, const TensorMeta* t) {
    if (t == nullptr || t->is_number || !is_plugin(t->device.type)) return t;
    const Tensor tensor = Tensor::from(t);
    std::deque<Copy>& copies = copies_[tensor->storage->data()];
    for (Copy& copy : copies) {
      if (!same_elements(copy.tensor, tensor)) continue;
      copy.is_written |= param.written;
      return copy.host.get();
    }
    copies.push_back(Copy{tensor, fetch(tensor), param.written});
    return copies.back().host.get();
  }
  static void check_overlap(const Op& op, const std::deque<Copy>& copies) {
    for (size_t i = 0; i < copies.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const Copy &a = copies[i], &b = copies[j];
        if ((!a.is_written && !b.is_written) || a.tensor.numel() == 0 || b.tensor.numel() == 0) continue;
        check(ErrorKind::kNotImplemented, !may_overlap(a.tensor, b.tensor), "[", op.name,
              "] cannot be executed on the CPU for ", a.tensor.device(),
              ": a tensor that it writes partly overlaps another argument; clone() one of them");
      }
    }
  }

  std::vector<Arg> args_;
  std::deque<std::vector<const TensorMeta*>> lists_;
  absl::flat_hash_map<const void*, std::deque<Copy>> copies_;  // by the storage's address
};

void check_allowed(const Call& call, std::string_view reason) {
  const Device device{call.inferred.backend, call.inferred.device.index};
  const std::string type = device_type_name(device.type);
  check(ErrorKind::kNotImplemented, !Dispatcher::instance().suspends(call.op->id), "[", call.op->name,
        "] is not implemented for ", type, " devices: process groups and other engines communicate from the CPU or a ",
        "GPU; copy the tensor with .cpu()");
  check(ErrorKind::kNotImplemented, fallback_enabled.load(), "[", call.op->name, "] is not implemented for ", type,
        ": ", reason, ", and execution on the CPU instead is switched off");
}

// The device of a call, to which its fallback is counted.
int device_index(const Call& call) {
  if (is_plugin(call.inferred.device.type)) return call.inferred.device.index;
  for (const Arg& arg : call.args) {
    if (arg.kind == Arg::Kind::kTensor && is_plugin(arg.tensor->device.type)) return arg.tensor->device.index;
  }
  return 0;
}

// Copies the results of the CPU to the call's outputs.
void deliver(const Call& host, Call& call) {
  check(call.op->is_dynamic || call.outputs.size() == host.outputs.size(), "[", call.op->name, "] the CPU returned ",
        host.outputs.size(), " results, expected ", call.outputs.size());
  if (call.outputs.empty()) call.outputs.resize(host.outputs.size());
  for (size_t i = 0; i < host.outputs.size(); ++i) {
    const Tensor& result = host.outputs[i];
    Tensor& output = call.outputs[i];
    if (!result) continue;
    if (!output) {
      output =
          is_plugin(call.inferred.device.type) ? empty(result.sizes(), result.dtype(), call.inferred.device) : result;
    }
    if (output.same(result)) continue;
    check(output.sizes() == result.sizes(), "[", call.op->name, "] output with shape ", output.sizes(),
          " doesn't match the shape ", result.sizes());
    is_plugin(output.device().type) ? store(result, output) : copy_into(output, result);
  }
}

}  // namespace

void run_on_cpu(Call& call, std::string_view reason) {
  check_allowed(call, reason);
  run_on_host(call);
  library_of(call.inferred.backend).count_fallback(device_index(call), call.op->name);
}

void run_on_host(Call& call) {
  HostArguments arguments(call);
  Call host;
  host.op = call.op;
  host.args = arguments.args();
  infer(*call.op, host.args, false, &host.inferred);
  check(ErrorKind::kNotImplemented, host.inferred.backend == DeviceType::kCPU, "[", call.op->name,
        "] is not implemented for tensors on a ", device_type_name(call.inferred.backend), " device and a ",
        device_type_name(host.inferred.backend), " device");
  host.keys = backend_key(host.inferred.backend);
  Dispatcher::instance().redispatch(host, Key::kAutograd);
  if (!call.into && call.outputs.empty() && !call.op->is_dynamic) allocate_outputs(call);
  deliver(host, call);
  arguments.finish();
}

void set_fallback(bool enabled) { fallback_enabled = enabled; }

}  // namespace tt::plugin
