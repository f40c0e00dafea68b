#include "engine/program/deferred_calls.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "engine/dispatch/chain.h"
#include "engine/dispatch/chain_reduction.h"
#include "engine/dispatch/ops.h"
#include "engine/dispatch/written_tensors.h"
#include "engine/program/chain_code.h"
#include "engine/schema/default_float.h"
#include "engine/schema/error.h"
#include "engine/schema/layout.h"

namespace tt {
namespace {

constexpr size_t kLongText = 64;

std::string_view setting() {
  static const char* const value = std::getenv("TELETENSOR_WINDOWS");
  return value == nullptr ? "" : value;
}

bool is_number_for_tensor(const Call& call, size_t a) {
  return call.args[a].is_number() && call.op->params[a].type == ParamType::kTensor;
}

bool writes(const Call& call) {
  return call.into ||
         std::any_of(call.op->params.begin(), call.op->params.end(), [](const Param& param) { return param.written; });
}

// Whether a chain reads the tensor as fast as the operator alone: in the result's layout, or repeated.
bool is_read_in_order(const TensorMeta& arg, const TensorMeta& result) {
  if (arg.is_number || arg.device.type != DeviceType::kCPU || arg.dim() > result.dim()) return false;
  if (arg.dtype != result.dtype && arg.dtype != DType::kBool) return false;
  return arg.numel() < result.numel() ? arg.is_contiguous()
                                      : arg.sizes == result.sizes && arg.strides == result.strides;
}

bool is_operand(const Arg& arg, const TensorMeta& result) {
  switch (arg.kind) {
    case Arg::Kind::kTensor: return is_read_in_order(*arg.tensor, result);
    case Arg::Kind::kString: return arg.size <= kLongText;
    case Arg::Kind::kTensors:
    case Arg::Kind::kInts:
    case Arg::Kind::kFloats:
    case Arg::Kind::kSlot:
    case Arg::Kind::kSlots: return false;
    default: return true;
  }
}

}  // namespace

bool DeferredCalls::is_enabled() { return setting() != "0"; }

DeferredCalls::DeferredCalls() : min_elements_(setting() == "test" ? kMinRegionElements : kMinFusedElements) {}

bool DeferredCalls::take(Call& call) {
  if (may_defer(call)) {
    if (!fits(call)) flush();
    add(call);
    return true;
  }
  if (may_reduce(call)) {
    add(call);
    flush();
    return true;
  }
  // An operator with results of unknown sizes may run other calls, as a backward pass does.
  if (writes(call) || call.op->is_dynamic || reads_deferred(call)) flush();
  return false;
}

bool DeferredCalls::may_defer(const Call& call) const {
  const Inference& inferred = call.inferred;
  if (!call.op->is_pointwise || call.op->is_random || writes(call) || inferred.outputs.size() != 1) return false;
  const TensorMeta& result = inferred.outputs[0];
  if (inferred.backend != DeviceType::kCPU || inferred.alias || inferred.requires_grad || result.requires_grad ||
      result.offset != 0 || (result.dtype != DType::kFloat32 && result.dtype != DType::kFloat64) ||
      inferred.compute != result.dtype || result.numel() < min_elements_ || !is_dense(result.sizes, result.strides)) {
    return false;
  }
  const auto is_text = [](const Arg& arg) { return arg.kind == Arg::Kind::kString; };
  return std::all_of(call.args.begin(), call.args.end(), [&](const Arg& arg) { return is_operand(arg, result); }) &&
         std::count_if(call.args.begin(), call.args.end(), is_text) <= 1;
}

// Whether the call reduces the result of the last step, so that the loop may compute it.
bool DeferredCalls::may_reduce(const Call& call) const {
  if (steps_.empty() || steps_.size() >= kMaxSteps || !ends_chain(*call.op) || writes(call)) return false;
  const TensorMeta& input = steps_.back().result.meta();
  if (call.args[0].kind != Arg::Kind::kTensor || call.args[0].tensor != &input) return false;
  if (call.inferred.outputs.size() != 1 || call.inferred.requires_grad || !input.is_contiguous()) return false;
  const TensorMeta& result = call.inferred.outputs[0];
  if (result.dtype != input.dtype || !result.is_contiguous() || default_float() != steps_.back().default_dtype)
    return false;
  // The sizes of the dimensions are the call's own; the step keeps a copy of no list.
  return std::all_of(call.args.begin() + 1, call.args.end(), [](const Arg& arg) {
    return arg.kind != Arg::Kind::kTensor && arg.kind != Arg::Kind::kTensors && arg.kind != Arg::Kind::kString;
  });
}

size_t DeferredCalls::operands(const Call& call) const {
  size_t count = 0;
  for (size_t a = 0; a < call.args.size(); ++a)
    count += call.args[a].kind == Arg::Kind::kTensor || is_number_for_tensor(call, a);
  return count;
}

bool DeferredCalls::fits(const Call& call) const {
  if (steps_.empty()) return true;
  const TensorMeta &first = steps_[0].result.meta(), &result = call.inferred.outputs[0];
  return steps_.size() < kMaxSteps && operands_ + operands(call) <= kMaxChainInputs && first.dtype == result.dtype &&
         first.sizes == result.sizes && first.strides == result.strides && steps_[0].default_dtype == default_float();
}

bool DeferredCalls::reads_deferred(const Call& call) const {
  if (steps_.empty()) return false;
  const auto is_deferred = [&](const TensorMeta* t) {
    if (t == nullptr || t->is_number) return false;
    return static_cast<const TensorImpl*>(t)->storage == missing_.storage();
  };
  return std::any_of(call.args.begin(), call.args.end(), [&](const Arg& arg) {
    if (arg.kind == Arg::Kind::kTensor) return is_deferred(arg.tensor);
    if (arg.kind != Arg::Kind::kTensors) return false;
    const auto list = arg.list();
    return std::any_of(list.begin(), list.end(), is_deferred);
  });
}

void DeferredCalls::add(Call& call) {
  Step& step = steps_.emplace_back();
  step.op = call.op;
  step.args.assign(call.args.begin(), call.args.end());
  step.tensors.resize(call.args.size());
  for (size_t a = 0; a < call.args.size(); ++a) {
    if (call.args[a].kind == Arg::Kind::kTensor) step.tensors[a] = call.tensor(static_cast<int>(a));
    if (call.args[a].kind == Arg::Kind::kString) step.text = call.args[a].string();
  }
  const CallScope& scope = CallScope::current();
  step.site = scope.site;
  step.first_result = scope.first_result;
  step.default_dtype = default_float();
  step.result = Tensor(new TensorImpl(call.inferred.outputs[0], missing_.storage()));
  operands_ += operands(call);
  call.outputs.assign(1, step.result);
}

void DeferredCalls::flush_if_large() {
  if (steps_.empty()) return;
  const TensorMeta& result = steps_[0].result.meta();
  const uint64_t two_results = 2 * static_cast<uint64_t>(result.numel()) * item_size(result.dtype);
  const uint64_t most = std::max(kMaxHeldBytes, two_results);
  if (held_bytes() > most) flush();
}

uint64_t DeferredCalls::held_bytes() const {
  // References by steps to tensors, by these to storages and bases, and by bases to storages.
  struct Count {
    const RefCounted* object;
    uint32_t references;
  };
  absl::InlinedVector<Count, 16> tensors, bases, storages;
  const auto add = [](absl::InlinedVector<Count, 16>& counts, const RefCounted* object) {
    const auto is_it = [&](const Count& count) { return count.object == object; };
    const auto at = std::find_if(counts.begin(), counts.end(), is_it);
    if (at != counts.end()) return ++at->references;
    counts.push_back({object, 1});
    return uint32_t{1};
  };
  for (const Step& step : steps_) {
    for (const Tensor& tensor : step.tensors) {
      if (tensor && !is_deferred(tensor)) add(tensors, tensor.get());
    }
  }
  const auto is_held = [](const Count& count) { return count.object->ref_count() == count.references; };
  uint64_t bytes = 0;
  const auto add_storage = [&](const Storage* storage) {
    if (add(storages, storage) == storage->ref_count()) bytes += storage->bytes();
  };
  for (const Count& count : tensors) {
    if (!is_held(count)) continue;
    const auto* const tensor = static_cast<const TensorImpl*>(count.object);
    add_storage(tensor->storage.get());
    const TensorImpl* const base = tensor->base.get();
    if (base != nullptr && add(bases, base) == base->ref_count()) add_storage(base->storage.get());
  }
  return bytes;
}

void DeferredCalls::flush() {
  if (steps_.empty()) return;
  std::vector<Step> steps = std::exchange(steps_, {});
  operands_ = 0;
  CallScope& scope = CallScope::current();
  const auto site = scope.site;
  const auto first_result = scope.first_result;
  const Use executed(nullptr);
  const DefaultFloat default_dtype(steps[0].default_dtype);
  absl::Cleanup fail = [&] { failed_ = true; };
  // A result is stored if others than the steps refer to it.
  std::vector<bool> kept(steps.size());
  std::vector<uint32_t> references(steps.size(), 1);
  const auto producer = [&](const Tensor& tensor) {
    size_t i = 0;
    while (i < steps.size() && !steps[i].result.same(tensor)) ++i;
    return i;
  };
  for (const Step& step : steps) {
    for (const Tensor& tensor : step.tensors) {
      if (is_deferred(tensor)) ++references[producer(tensor)];
    }
  }
  std::vector<bool> needed(steps.size());
  for (size_t i = steps.size(); i-- > 0;) {
    kept[i] = steps[i].result.get()->ref_count() > references[i];
    if (!kept[i] && !needed[i]) continue;
    needed[i] = true;
    for (const Tensor& tensor : steps[i].tensors) {
      if (is_deferred(tensor)) needed[producer(tensor)] = true;
    }
  }
  std::vector<Step*> run;
  std::vector<bool> stored;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!needed[i]) continue;
    run.push_back(&steps[i]);
    stored.push_back(kept[i]);
  }
  if (run.size() == 1)
    run_one(*run[0]);
  else if (!run.empty())
    run_together(std::move(run), stored);
  scope.site = site;
  scope.first_result = first_result;
  std::move(fail).Cancel();
}

namespace {

// Gives a result its memory.
void set_values(const Tensor& result, const Tensor& computed) {
  check(computed->sizes == result->sizes && computed->strides == result->strides && computed->dtype == result->dtype &&
            computed->offset == 0,
        "expected a loop to compute ", describe(result.meta()), ", got ", describe(computed.meta()));
  result->storage = computed->storage;
}

}  // namespace

void DeferredCalls::run_one(Step& step) {
  CallScope& scope = CallScope::current();
  scope.site = step.site;
  scope.first_result = step.first_result;
  Call call;
  call.op = step.op;
  for (Arg& arg : step.args) {
    if (arg.kind == Arg::Kind::kString) arg = Arg(std::string_view(step.text));
  }
  call.args = step.args;
  Dispatcher::instance().dispatch(call);
  set_values(step.result, call.outputs[0]);
}

void DeferredCalls::run_together(std::vector<Step*> steps, const std::vector<bool>& kept) {
  ChainWriter writer;
  Tensors inputs;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = *steps[i];
    writer.begin_step(*step.op, step.site, step.first_result, step.args.size(), kept[i] && i + 1 < steps.size());
    for (size_t a = 0; a < step.args.size(); ++a) {
      const Tensor& tensor = step.tensors[a];
      if (!tensor) {
        const bool is_text = step.args[a].kind == Arg::Kind::kString;
        writer.add_value(is_text ? Arg(std::string_view(step.text)) : step.args[a]);
      } else if (is_deferred(tensor)) {
        size_t from = 0;
        while (!steps[from]->result.same(tensor)) ++from;
        writer.add_result(from);
      } else {
        auto at = std::find_if(inputs.begin(), inputs.end(), [&](const Tensor& input) { return input.same(tensor); });
        if (at == inputs.end()) at = inputs.insert(inputs.end(), tensor);
        writer.add_input(static_cast<size_t>(at - inputs.begin()));
      }
    }
  }
  const Tensors results = ops::pointwise_chain(inputs, writer.code());
  size_t next = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (kept[i] || i + 1 == steps.size()) set_values(steps[i]->result, results[next++]);
  }
}

}  // namespace tt
