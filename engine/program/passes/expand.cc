#include "engine/program/passes/expand.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/device/cancellation.h"
#include "engine/dispatch/call_recorder.h"
#include "engine/dispatch/call_scope.h"
#include "engine/program/passes/recompute.h"
#include "engine/program/passes/remove_copies.h"
#include "engine/program/passes/set_device.h"
#include "engine/program/passes/shared_memory.h"
#include "engine/program/passes/writes.h"
#include "engine/schema/default_float.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "engine/schema/program_types.h"

namespace tt {
namespace {

constexpr Device kMeta{DeviceType::kMeta};

// A tensor with the input's metadata and no data, of a storage of its own.
Tensor without_data(const Tensor& input) {
  TensorMeta meta = input.meta();
  meta.device = kMeta;
  return Tensor(new TensorImpl(meta, Ref<Storage>(new Storage(kMeta, input->storage->bytes()))));
}

// Makes instructions of executed calls. A value is known by its place in a storage, because the tape saves values as
// other tensors over the same storage.
class Recorder final : public CallRecorder {
 public:
  Recorder(absl::Span<const Tensor> inputs, Device device) : device_(device) {
    for (const Tensor& input : inputs) name(input);
  }

  void begin(const Instruction& instruction) override {
    in_backward_ = instruction.op->id == op_id::kBackward;
    mark_ = instruction.flags & Instruction::kRecompute;
  }

  bool take(Call& call) override {
    if (call.inferred.backend != DeviceType::kMeta)
      fail(ErrorKind::kNotImplemented, "[", call.op->name, "] is executed on ", call.inferred.device);
    return false;
  }

  void record(const Call& call) override {
    std::vector<Slot> lists;  // spans into it must stay valid
    size_t entries = 0;
    for (const Arg& arg : call.args) entries += arg.kind == Arg::Kind::kTensors ? arg.size : 0;
    lists.reserve(entries);
    std::vector<Arg> args(call.args.begin(), call.args.end());
    for (size_t i = 0; i < args.size(); ++i) {
      Arg& arg = args[i];
      if (arg.kind == Arg::Kind::kTensor) {
        arg = slot_arg(find(Tensor::from(arg.tensor)));
      } else if (arg.kind == Arg::Kind::kTensors) {
        const Slot* const first = lists.data() + lists.size();
        for (const TensorMeta* tensor : arg.list()) lists.push_back(tensor ? find(Tensor::from(tensor)) : 0);
        arg.kind = Arg::Kind::kSlots;
        arg.slots = first;
      } else if (call.op->params[i].type == ParamType::kDevice && arg.kind == Arg::Kind::kInt &&
                 arg.integer == kMeta.encode()) {
        arg = Arg(device_);
      }
    }
    std::vector<Slot> results;
    for (const Tensor& output : call.outputs) results.push_back(call.into ? find(output) : name(output));
    Instruction& instruction = program_.add(*call.op, args, results);
    instruction.flags =
        static_cast<uint8_t>((call.into ? Instruction::kInto : 0) | Instruction::flags_of(default_float()) | mark_);
    is_backward_.push_back(in_backward_);
    instruction.site = CallScope::current().site;
  }

  // The name of a value. Throws Error if no recorded call has computed it.
  Slot find(const Tensor& tensor) const {
    const auto storage = values_.find(tensor->storage.get());
    check(storage != values_.end(), "a value does not come from a call");
    for (const auto& [meta, slot] : storage->second) {
      if (meta.dtype == tensor.dtype() && meta.offset == tensor->offset && meta.sizes == tensor.sizes() &&
          meta.strides == tensor.strides()) {
        return slot;
      }
    }
    fail(ErrorKind::kRuntime, "a view does not come from a call");
  }
  // The name of an output, which differs from the names of earlier ones: of tensors over the same elements, such as a
  // gradient and what detach() returned of it, each has a name of its own.
  Slot name_of_output(const Tensor& tensor) {
    const Slot slot = find(tensor);
    if (outputs_.insert(slot).second) return slot;
    const Arg source[] = {slot_arg(slot)};
    const Slot another[] = {name(tensor)};
    Instruction& instruction = program_.add(*find_op(op_id::kAlias), source, another);
    instruction.flags = Instruction::flags_of(default_float());
    is_backward_.push_back(false);
    return last_;
  }
  Program& program() { return program_; }
  // By instruction: whether a backward pass has called it.
  const std::vector<bool>& is_backward() const { return is_backward_; }

 private:
  Slot name(const Tensor& tensor) {
    check(ErrorKind::kValue, last_ < Program::kMaxNames, "a Program has at most ", Program::kMaxNames, " names");
    storages_.push_back(tensor->storage);
    std::vector<std::pair<TensorMeta, Slot>>& values = values_[tensor->storage.get()];
    values.insert(values.begin(), {tensor.meta(), ++last_});  // the latest first
    return last_;
  }

  const Device device_;
  Program program_;
  bool in_backward_ = false;
  uint8_t mark_ = 0;
  std::vector<bool> is_backward_;
  absl::flat_hash_set<Slot> outputs_;
  Slot last_ = 0;
  absl::flat_hash_map<const Storage*, std::vector<std::pair<TensorMeta, Slot>>> values_;
  std::vector<Ref<Storage>> storages_;  // so that no address is used twice
};

}  // namespace

bool has_backward(const Program& program) {
  return std::any_of(program.instructions().begin(), program.instructions().end(),
                     [](const Instruction& instruction) { return instruction.op->id == op_id::kBackward; });
}

std::optional<Program> expand(const Program& program, const ProgramInputs& inputs, double memory_budget,
                              Recomputed* recomputed, std::string* reason) {
  std::vector<Tensor> tensors(inputs.read.begin(), inputs.read.end());
  tensors.insert(tensors.end(), inputs.written.begin(), inputs.written.end());
  const std::vector<Tensor> given = tensors;
  std::vector<const TensorMeta*> metas;
  metas.reserve(given.size());
  for (const Tensor& tensor : given) metas.push_back(tensor.get());
  const UseDefs uses(program);
  const absl::Span<const Slot> read = uses.inputs();
  const Device device = read.empty() ? Device{} : tensors[read[0] - 1].device();
  const bool writes = writes_in_place(program);
  absl::flat_hash_set<const Storage*> storages;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Tensor& tensor = tensors[i];
    const bool is_read = uses.find(i + 1) != nullptr;
    if (!is_read) {
      tensor = without_data(tensor);
      continue;
    }
    if (tensor.device() != device || device.type == DeviceType::kMeta) {
      *reason = "the inputs have no data, or are on different devices";
      return std::nullopt;
    }
    if (!storages.insert(tensor->storage.get()).second && writes) {
      *reason = "inputs share memory, and some are written";
      return std::nullopt;
    }
    tensor = without_data(tensor);
  }
  Recorder recorder(tensors, device);
  CallScope& scope = CallScope::current();
  scope.recorder = &recorder;
  const absl::Cleanup stop = [&] { scope.recorder = nullptr; };
  try {
    const auto all = absl::MakeConstSpan(tensors);
    const ProgramInputs without_data{all.first(inputs.read.size()), all.subspan(inputs.read.size())};
    Program on_meta = program;
    set_device(&on_meta, kMeta, device);
    const Tensors outputs = run_program(on_meta, without_data, [](uint32_t) { return std::string(); });
    std::vector<Slot> names;
    for (const Tensor& output : outputs) {
      check(!output.requires_grad(), "an output requires grad");
      names.push_back(recorder.name_of_output(output));
    }
    Program expanded = std::move(recorder.program());
    expanded.set_outputs(names);
    const ProgramTypes types(expanded, metas, /*grad_enabled=*/false);
    *recomputed = recompute(recorder.is_backward(), &types, metas, memory_budget, &expanded);
    remove_copies(&expanded, ProgramTypes(expanded, metas, /*grad_enabled=*/false), metas.size());
    check_program(expanded, metas.size());
    return expanded;
  } catch (const Cancelled&) {
    throw;
  } catch (const Error& error) {
    *reason = error.message();
    return std::nullopt;
  }
}

}  // namespace tt
