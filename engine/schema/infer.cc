// infer(): applies an operator's own rules, then the common ones: a single device, accepted dtypes, gradients, valid
// sizes.

#include <algorithm>

#include "engine/schema/custom_table.h"
#include "engine/schema/error.h"
#include "engine/schema/layout.h"
#include "engine/schema/op.h"

namespace tt {
namespace {

// Finds the device of a call's tensors. Like numbers, zero-dim CPU tensors are compatible with any device.
class Placement {
 public:
  void add(const TensorMeta& t) {
    if (t.is_number) return;
    bool is_zero_dim_cpu = t.dim() == 0 && t.device.type == DeviceType::kCPU;
    if (!found_ || (is_zero_dim_cpu_ && !is_zero_dim_cpu)) {
      device_ = t.device;
      is_zero_dim_cpu_ = is_zero_dim_cpu;
      found_ = true;
    } else if (t.device != device_ && !is_zero_dim_cpu) {
      fail(ErrorKind::kRuntime, "Expected all tensors to be on the same device, but found at least two devices, ",
           device_, " and ", t.device, "!");
    }
  }
  Device device() const { return device_; }

 private:
  Device device_;
  bool found_ = false;
  bool is_zero_dim_cpu_ = false;
};

DeviceType backend_of(Device arguments, Device results) {
  auto either = [&](DeviceType t) { return arguments.type == t || results.type == t; };
  if (either(DeviceType::kMeta)) return DeviceType::kMeta;
  // A device library copies from and to GPUs, whose plug-in does not know it.
  if (is_plugin(arguments.type) || is_plugin(results.type)) return std::max(arguments.type, results.type);
  return either(DeviceType::kCUDA) ? DeviceType::kCUDA : DeviceType::kCPU;
}

void check_float8(const Op& op, const TensorMeta& t) {
  if (!is_float8(t.dtype) || op.takes_float8 || op.is_view) [[likely]]
    return;
  fail(ErrorKind::kNotImplemented, "not implemented for '", scalar_type_name(t.dtype), "'");
}

// Rejects a complex number if the computation is real.
void check_number(const Inference& out) {
  for (const TensorMeta& meta : out.outputs) {
    if (is_complex(meta.dtype)) return;
  }
  check(is_complex(out.compute), "value cannot be converted to a real type without overflow: it is complex");
}

// Fills device, backend and requires_grad.
void infer_common(const Op& op, Args args, bool grad_enabled, Inference* out) {
  Placement placement;
  const Arg* device = nullptr;
  bool requires_grad = false;
  for (size_t i = 0; i < args.size(); ++i) {
    const Arg& arg = args[i];
    const Param& param = op.params[i];
    if (arg.kind == Arg::Kind::kTensor) {
      check_float8(op, *arg.tensor);
      if (!op.any_devices) placement.add(*arg.tensor);
      requires_grad |= param.differentiable && arg.tensor->requires_grad;
    } else if (arg.kind == Arg::Kind::kTensors) {
      for (const TensorMeta* t : arg.list()) {
        if (!t) continue;
        check_float8(op, *t);
        if (!op.any_devices) placement.add(*t);
        requires_grad |= param.differentiable && t->requires_grad;
      }
    } else if (arg.kind == Arg::Kind::kComplex) {
      check_number(*out);
    } else if (param.type == ParamType::kDevice && !arg.is_none()) {
      device = &arg;
    }
  }
  out->device = device ? decode_device(int64_t{device->integer}) : placement.device();
  // An operator with a device argument uses only the sizes and dtype of its tensors (except to_device, which has a
  // gradient). The result's device alone therefore selects the backend: zeros_like(meta, device="cpu") runs on the CPU.
  const bool reads_values = !device || op.differentiable;
  out->backend = reads_values ? backend_of(placement.device(), out->device) : out->device.type;
  if (out->backend == DeviceType::kMeta) [[unlikely]]
    check(ErrorKind::kNotImplemented, out->device.type == DeviceType::kMeta,
          "Cannot copy out of meta tensor; no data!");
  out->requires_grad = requires_grad && grad_enabled && op.differentiable;
}

void check_size(const TensorMeta& meta) {
  check(meta.dim() <= kMaxDims, "a tensor has at most ", kMaxDims, " dimensions, got ", meta.dim());
  SymInt bytes = static_cast<int64_t>(item_size(meta.dtype));
  for (SymInt size : meta.sizes) {
    // A size of zero counts as one, because strides are products of the other sizes.
    bool overflows = multiply_overflows(bytes, larger(size, 1), &bytes);
    check(!overflows, "Storage size calculation overflowed with sizes=", meta.sizes);
  }
}

// The elements of a view must be within 2^63 bytes of the storage's start, so that neither a sum of indices times
// strides nor an address overflows. A dimension of size zero counts as one here as well.
void check_reach(const TensorMeta& meta) {
  SymInt last = meta.offset, bytes = 0;
  bool overflows = false;
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    SymInt reach = 0;
    overflows |= multiply_overflows(larger(meta.sizes[d], 1) - 1, meta.strides[d], &reach);
    overflows |= add_overflows(last, reach, &last);
  }
  overflows |= add_overflows(last, 1, &last);
  overflows |= multiply_overflows(last, static_cast<int64_t>(item_size(meta.dtype)), &bytes);
  check(!overflows, "Storage size calculation overflowed with sizes=", meta.sizes, ", strides=", meta.strides,
        " and storage_offset=", meta.offset);
}

}  // namespace

void infer(const Op& op, Args args, bool grad_enabled, Inference* out) {
  out->outputs.clear();
  out->alias = false;
  try {
    if (is_custom(op.id)) [[unlikely]]
      infer_custom(op, args, out);
    else
      op.infer(args, out);
    for (const TensorMeta& meta : out->outputs) check_size(meta);  // so that follow_arguments() can use numel()
    follow_arguments(op, args, out);
    infer_common(op, args, grad_enabled, out);
    if (is_custom(op.id) && out->requires_grad) [[unlikely]]
      check_custom_gradient(op);
    if (is_float8(out->compute)) out->compute = DType::kFloat32;  // computed in float
    for (TensorMeta& meta : out->outputs) {
      check_float8(op, meta);
      meta.device = out->device;
      meta.requires_grad = out->requires_grad && has_gradients(meta.dtype);
      if (op.is_view) check_reach(meta);
    }
  } catch (Error& e) {
    e.set_op(op.name);
    throw;
  }
}

}  // namespace tt
