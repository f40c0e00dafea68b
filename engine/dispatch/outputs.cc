// Prepares outputs: new tensors, or out tensors that a kernel may not be able to write directly.

#include "engine/device/cancellation.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/dispatch/partial_writes.h"
#include "engine/schema/error.h"
#include "engine/tensor/new_result.h"

namespace tt {
namespace {

struct Range {
  const char* begin;
  const char* end;
};

Range bytes_of(const TensorImpl& t) {
  int64_t last = t.offset + 1;
  for (size_t d = 0; d < t.sizes.size(); ++d) {
    if (t.sizes[d] == 0) return {nullptr, nullptr};
    last += (t.sizes[d] - 1) * t.strides[d];
  }
  const char* base = static_cast<const char*>(t.storage->data());
  auto size = static_cast<int64_t>(item_size(t.dtype));
  return {base + t.offset * size, base + last * size};
}

bool share_bytes(const TensorImpl& a, const TensorImpl& b) {
  if (a.storage != b.storage) return false;
  Range x = bytes_of(a), y = bytes_of(b);
  return x.begin < y.end && y.begin < x.end;
}

bool same_layout(const TensorImpl& a, const TensorImpl& b) {
  return a.dtype == b.dtype && a.offset == b.offset && a.sizes == b.sizes && a.strides == b.strides;
}

// Whether clashes(argument) is true for any tensor argument.
template <typename Clash>
bool any_tensor_argument(const Call& call, Clash clashes) {
  for (const Arg& arg : call.args) {
    if (arg.kind == Arg::Kind::kTensor && clashes(*Tensor::from(arg.tensor).get())) return true;
    if (arg.kind != Arg::Kind::kTensors) continue;
    for (const TensorMeta* t : arg.list()) {
      if (t && clashes(*Tensor::from(t).get())) return true;
    }
  }
  return false;
}

bool is_plain(const Call& call, const TensorMeta& inferred, const TensorImpl& out) {
  if (out.dtype != inferred.dtype || !out.is_contiguous()) return false;
  return !any_tensor_argument(call, [&](const TensorImpl& arg) { return share_bytes(arg, out); });
}

bool is_separate(const Call& call, const TensorMeta&, const TensorImpl& out) {
  return !any_tensor_argument(call,
                              [&](const TensorImpl& arg) { return share_bytes(arg, out) && !same_layout(arg, out); });
}

bool is_updated(const Call& call, const TensorMeta& inferred, const TensorImpl& out) {
  if (out.dtype != inferred.dtype) return false;
  const TensorImpl& first = *Tensor::from(call.args[0].tensor).get();
  const bool starts_there = share_bytes(first, out);
  if (starts_there && !same_layout(first, out)) return false;
  int sharing = 0;
  any_tensor_argument(call, [&](const TensorImpl& arg) {
    sharing += share_bytes(arg, out);
    return false;
  });
  return sharing == (starts_there ? 1 : 0);
}

// Returns false if target i shares memory with an earlier target: writing it directly would overwrite the earlier
// result.
bool is_unshared(const Tensors& targets, size_t i) {
  for (size_t j = 0; j < i; ++j) {
    if (share_bytes(*targets[i].get(), *targets[j].get())) return false;
  }
  return true;
}

using Fits = bool (*)(const Call&, const TensorMeta&, const TensorImpl&);

bool is_never(const Call&, const TensorMeta&, const TensorImpl&) { return false; }

// Runs `kernel` with new or undefined tensors in place of the out tensors that it cannot write directly, and copies the
// results to them. Kernels that write them directly check values first, except those that take plain outputs only: if
// one of these fails, the targets' values are lost.
void run_with_temporaries(Call& call, Kernel kernel, Fits fits) {
  Tensors targets = call.outputs;
  bool any_direct = false;
  for (size_t i = 0; i < targets.size(); ++i) {
    bool direct =
        !call.op->is_dynamic && fits(call, call.inferred.outputs[i], *targets[i].get()) && is_unshared(targets, i);
    any_direct |= direct;
    if (!direct) call.outputs[i] = Tensor();
  }
  allocate_outputs(call);
  try {
    kernel(call);
  } catch (const Cancelled&) {  // the Dispatcher adds the writes
    throw;
  } catch (const std::exception&) {
    if (any_direct && fits == &is_plain) PartialWrites::add(call);
    throw;
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    if (call.outputs[i].same(targets[i])) continue;
    check(call.outputs[i].sizes() == targets[i].sizes(), "[", call.op->name, "] output with shape ", targets[i].sizes(),
          " doesn't match the shape ", call.outputs[i].sizes());  // data-dependent sizes are not known earlier
    copy_into(targets[i], call.outputs[i]);
    call.outputs[i] = targets[i];
  }
}

}  // namespace

void allocate_outputs(Call& call) {
  const auto& inferred = call.inferred.outputs;
  call.outputs.resize(inferred.size());
  if (call.op->is_dynamic) return;
  for (size_t i = 0; i < inferred.size(); ++i) {
    // Other kernels than pointwise ones write contiguous results; see conform_outputs().
    if (!call.outputs[i]) call.outputs[i] = call.op->is_pointwise ? new_result(inferred[i]) : allocate(inferred[i]);
  }
}

void run_with_plain_outputs(Call& call, Kernel kernel) {
  if (call.into) return run_with_temporaries(call, kernel, &is_plain);
  allocate_outputs(call);
  kernel(call);
}

void run_with_inferred_outputs(Call& call, Kernel kernel) {
  if (call.into) return run_with_temporaries(call, kernel, &is_plain);
  call.outputs.clear();
  for (const TensorMeta& inferred : call.inferred.outputs) call.outputs.push_back(new_result(inferred));
  kernel(call);
}

void run_with_temporary_outputs(Call& call, Kernel kernel) {
  if (call.into) return run_with_temporaries(call, kernel, &is_never);
  allocate_outputs(call);
  kernel(call);
}

void run_with_separate_outputs(Call& call, Kernel kernel) {
  if (call.into) return run_with_temporaries(call, kernel, &is_separate);
  allocate_outputs(call);
  kernel(call);
}

void run_with_updated_output(Call& call, Kernel kernel) {
  if (call.into) return run_with_temporaries(call, kernel, &is_updated);
  allocate_outputs(call);
  kernel(call);
}

void copy_into(const Tensor& target, const Tensor& source) {
  static const Op* const assign = find_op("assign");
  const Arg args[] = {target.get(), source.get()};
  Call call;
  call.op = assign;
  call.args = args;
  call.outputs.push_back(target);
  call.into = true;
  infer(*assign, args, false, &call.inferred);
  check_out_variant(*assign, call.inferred.outputs[0], target.meta(), true, false);
  call.keys = backend_key(call.inferred.backend);
  Dispatcher::instance().redispatch(call, Key::kAutograd);
}

}  // namespace tt
