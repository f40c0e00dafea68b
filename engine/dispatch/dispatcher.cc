#include "engine/dispatch/dispatcher.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "engine/device/cancellation.h"
#include "engine/device/failed_check.h"
#include "engine/device/fair_queue.h"
#include "engine/dispatch/call_recorder.h"
#include "engine/dispatch/call_scope.h"
#include "engine/dispatch/missing_values.h"
#include "engine/dispatch/partial_writes.h"
#include "engine/dispatch/view.h"
#include "engine/dispatch/written_tensors.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "engine/schema/read_only.h"
#include "engine/tensor/new_result.h"

namespace tt {
namespace {

// Whether the tape may have to record the call: a result may need a gradient, or a tensor with a gradient is about to
// be overwritten.
bool needs_autograd(const Call& call, bool grad_enabled) {
  if (call.inferred.requires_grad) return true;
  if (!call.into || !grad_enabled) return false;
  for (const Tensor& target : call.outputs) {
    if (target.requires_grad() || (target->base && target->base->requires_grad)) return true;
  }
  return false;
}

void check_out_variants(const Call& call, bool grad_enabled) {
  const auto& results = call.inferred.outputs;
  check(call.outputs.size() == results.size(), "[", call.op->name, "] has ", results.size(), " results, but out has ",
        call.outputs.size(), " tensors");
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const Tensor& target = call.outputs[i];
    check_out_variant(*call.op, results[i], target.meta(), target->is_leaf(), grad_enabled);
  }
}

void bump_versions(const Call& call) {
  for_each_written(call, [](const Tensor& tensor) { tensor->storage->bump_version(); });
}

// Published bytes never change: other sessions read them.
void check_writable(const Call& call) {
  for_each_written(call, [&](const Tensor& tensor) {
    if (!tensor->storage->is_read_only()) [[likely]]
      return;
    check(!call.into && !writes_arguments(*call.op, call.args), "[", call.op->name, "] ", kReadOnly);
  });
}

// Throws Cancelled in a cancelled frame, unless the call only changes the session's own state (a seed, an event, the
// end of a capture). Those calls are executed so that the session can continue.
void stop_before(const Call& call, bool writes) {
  const bool computes = writes || call.op->num_outputs != 0;
  if (!computes || call.op->id == op_id::kGraphEnd) return;
  check_cancelled();
}

// Whether a result has the layout that the client knows: the inferred one, or contiguous if its sizes were not known.
bool has_inferred_layout(const Call& call, size_t i) {
  const TensorMeta& result = call.outputs[i].meta();
  if (call.op->is_dynamic || call.inferred.outputs.size() != call.outputs.size()) return result.is_contiguous();
  const TensorMeta& inferred = call.inferred.outputs[i];
  if (result.strides == inferred.strides) [[likely]]
    return true;
  for (size_t d = 0; d < result.sizes.size(); ++d) {
    if (result.sizes[d] > 1 && result.strides[d] != inferred.strides[d]) return false;
  }
  return true;
}

// Views have the layout that infer() computes; a fused chain and a Program those of their last steps, which the client
// has inferred.
bool chooses_layout(const Op& op) {
  return op.is_view || op.id == op_id::kPointwiseChain || op.id == op_id::kRunProgram;
}

// Copies results whose kernel wrote another layout.
void conform_outputs(Call& call) {
  if (chooses_layout(*call.op)) return;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.outputs[i] || has_inferred_layout(call, i)) [[likely]]
      continue;
    const Tensor& written = call.outputs[i];
    const Tensor laid_out = call.op->is_dynamic ? empty(written.sizes(), written.dtype(), written.device())
                                                : new_result(call.inferred.outputs[i]);
    copy_into(laid_out, written);
    call.outputs[i] = laid_out;
  }
}

Tensor call_on(const char* name, const Tensor& t, SizesView dims = {}) {
  const Op* op = find_op(name);
  const Arg args[] = {Arg(t.get()), Arg(dims)};
  Call call;
  call.op = op;
  call.args = Args(args, op->params.size());
  Dispatcher::instance().dispatch(call);
  return call.outputs[0];
}

// The same for the results of a composite, whose gradients are recorded.
void conform_composite(Call& call) {
  if (chooses_layout(*call.op)) return;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.outputs[i] || has_inferred_layout(call, i)) [[likely]]
      continue;
    const Tensor written = call.outputs[i];
    const bool is_plain = call.op->is_dynamic || call.inferred.outputs[i].is_contiguous();
    if (is_plain) {
      call.outputs[i] = call_on("contiguous", written);
      continue;
    }
    // Contiguous with the dimensions in the order of the inferred strides, and back.
    const Sizes& strides = call.inferred.outputs[i].strides;
    Sizes order(strides.size()), back(strides.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)];
    });
    for (size_t d = 0; d < order.size(); ++d) back[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
    call.outputs[i] = call_on("permute", call_on("contiguous", call_on("permute", written, order)), back);
  }
}

// Replaces the tensors in `args` whose bytes the call overwrites by copies, because the tape may save them: the
// operators that a composite calls do not see that a final `assign` overwrites their arguments. Returns the copies.
Tensors copy_overwritten(const Call& call, std::vector<Arg>& args) {
  static const Op* const clone = find_op("clone");
  Tensors copies;
  copies.reserve(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].kind != Arg::Kind::kTensor || !args[i].tensor) continue;
    const Tensor argument = call.tensor(static_cast<int>(i));
    const bool overwritten = std::any_of(call.outputs.begin(), call.outputs.end(), [&](const Tensor& target) {
      return argument->storage && target->storage == argument->storage;
    });
    if (!overwritten) continue;
    const Arg source[] = {argument.get()};
    Call copy;
    copy.op = clone;
    copy.args = source;
    Dispatcher::instance().dispatch(copy);
    copies.push_back(copy.outputs[0]);
    args[i] = copies.back().get();
  }
  return copies;
}

// A composite creates new tensors by calling operators; a final `assign` copies them into the out tensors.
void run_composite(Call& call, Kernel composite) {
  if (!call.into) {
    composite(call);
    return conform_composite(call);
  }
  const Args given = call.args;
  std::vector<Arg> args;
  Tensors copies;
  if (call.inferred.requires_grad && CallScope::current().grad_enabled) {
    args.assign(given.begin(), given.end());
    copies = copy_overwritten(call, args);
    call.args = args;
  }
  Tensors targets = std::move(call.outputs);
  call.outputs.clear();
  call.into = false;
  composite(call);
  static const Op* const assign = find_op("assign");
  for (size_t i = 0; i < targets.size(); ++i) {
    const Arg args[] = {targets[i].get(), call.outputs[i].get()};
    Call copy;
    copy.op = assign;
    copy.args = args;
    copy.outputs.push_back(targets[i]);
    copy.into = true;
    Dispatcher::instance().dispatch(copy);
  }
  call.outputs = std::move(targets);
  call.args = given;
  call.into = true;
}

// The shape and dtype rules have already computed the result: meta tensors have no data.
void meta_kernel(Call& call) {
  check(ErrorKind::kNotImplemented, !call.op->is_dynamic, "[", call.op->name,
        "] the result's sizes depend on data, which meta tensors do not have");
  allocate_outputs(call);
}

}  // namespace

Dispatcher& Dispatcher::instance() {
  static Dispatcher* dispatcher = new Dispatcher;  // outlives all threads that may call it
  return *dispatcher;
}

Dispatcher::Dispatcher() {
  set_fallback(Key::kAutocast, &autocast);
  set_fallback(Key::kMeta, &meta_kernel);
  for (const Op* op : all_ops()) {
    if (!op->is_view) continue;
    for (int key = static_cast<int>(Key::kMeta); key < kNumKeys; ++key)
      set(op->id, static_cast<Key>(key), &view_kernel);
  }
}

void Dispatcher::set(uint16_t op, Key key, Kernel kernel) { row(op).kernels[static_cast<size_t>(key)] = kernel; }

void Dispatcher::adopt_kernels(Key to, Key from) {
  for (Row& row : rows_) {
    Kernel& kernel = row.kernels[static_cast<size_t>(to)];
    if (!kernel) kernel = row.kernels[static_cast<size_t>(from)];
  }
}

void Dispatcher::set_fallback(Key key, Kernel kernel) { fallbacks_[static_cast<size_t>(key)] = kernel; }

// Writes that were recorded since may have changed which views require grad.
static void follow_bases(const Call& call) {
  const auto follow = [](const TensorMeta* t) {
    // Without a reference, which would cost more than the check.
    if (t != nullptr && !t->is_number) const_cast<TensorImpl*>(static_cast<const TensorImpl*>(t))->follow_base();
  };
  for (const Arg& arg : call.args) {
    if (arg.kind == Arg::Kind::kTensor) follow(arg.tensor);
    if (arg.kind != Arg::Kind::kTensors) continue;
    for (const TensorMeta* t : arg.list()) follow(t);
  }
  for (const Tensor& target : call.outputs) target->follow_base();
}

void Dispatcher::set_composite(uint16_t op, Kernel kernel) { row(op).composite = kernel; }

Dispatcher::Row& Dispatcher::row(uint16_t id) {
  const Op* op = find_op(id);
  check(op != nullptr, "unknown operator id ", id);
  if (id >= rows_.size()) rows_.resize(id + 1u);
  for (const Param& param : op->params) rows_[id].writes |= param.written;
  return rows_[id];
}

void Dispatcher::dispatch(Call& call) const {
  CallScope& scope = CallScope::current();
  if (scope.grad_enabled) follow_bases(call);
  if (std::exchange(scope.autocasts, false) && !call.into && has_autocast_policy(*call.op)) [[unlikely]] {
    return run(call, Key::kAutocast);  // infers the results after the casts
  }
  run_with_check_recovery([&] { infer(*call.op, call.args, scope.grad_enabled, &call.inferred); });
  if (call.into) check_out_variants(call, scope.grad_enabled);
  KeySet keys = backend_key(call.inferred.backend);
  bool own_autograd = call.op->id < rows_.size() && rows_[call.op->id].kernels[static_cast<size_t>(Key::kAutograd)];
  if (own_autograd || needs_autograd(call, scope.grad_enabled)) keys = keys.with(Key::kAutograd);
  run(call, keys);
}

void Dispatcher::run(Call& call, KeySet keys) const {
  static const Row no_row;
  const Row& row = call.op->id < rows_.size() ? rows_[call.op->id] : no_row;
  for (;;) {
    Key key = keys.first();
    call.keys = keys;
    if (key >= Key::kAutograd && row.composite) return run_composite(call, row.composite);
    if (key >= Key::kMeta) return run_backend(call, row, key);
    Kernel kernel = row.kernels[static_cast<size_t>(key)];
    if (!kernel) kernel = fallbacks_[static_cast<size_t>(key)];
    if (kernel) return kernel(call);
    keys = keys.below(key);
  }
}

void Dispatcher::run_backend(Call& call, const Row& row, Key key) const {
  Kernel kernel = row.kernels[static_cast<size_t>(key)];
  if (!kernel) kernel = fallbacks_[static_cast<size_t>(key)];
  check(ErrorKind::kNotImplemented, kernel != nullptr, "[", call.op->name, "] is not implemented for ",
        call.inferred.device);
  CallScope& scope = CallScope::current();
  // Calls within the kernel are part of this one.
  CallRecorder* const recorder = std::exchange(scope.recorder, nullptr);
  const absl::Cleanup resume = [&] { scope.recorder = recorder; };
  if (recorder != nullptr) [[unlikely]] {
    if (recorder->take(call)) return;
  }
  MissingValues::check_none(call);
  if (row.suspends && scope.in_program) [[unlikely]]
    fail(ErrorKind::kNotImplemented, "[", call.op->name, "] waits for something outside the engine; a Program cannot");
  if (call.into || row.writes) check_writable(call);
  if (scope.observes_kernels()) [[unlikely]]
    scope.before_kernel(call);
  if (!row.suspends) {
    if (Turn* const turn = Turn::current()) turn->offer();
    if (scope.shares_gpus && key == Key::kCUDA) scope.before_launch(call.inferred.device);
    if (cancel_requested()) [[unlikely]]
      stop_before(call, row.writes);
  }
  const auto observe = [&] {
    if (scope.observes_kernels()) [[unlikely]]
      scope.after_kernel(call);
  };
  const Activity::Kernel running(scope.activity, call.op->id);
  try {
    kernel(call);
    if (!call.into) conform_outputs(call);
  } catch (const std::exception& error) {  // costs nothing unless thrown
    if (dynamic_cast<const Cancelled*>(&error) && (call.into || row.writes)) PartialWrites::add(call);
    observe();
    throw;
  }
  observe();
  if (call.into || row.writes) bump_versions(call);
  if (recorder != nullptr) [[unlikely]]
    recorder->record(call);
}

}  // namespace tt
