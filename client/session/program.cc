#include "client/session/program.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
#include "client/link/outside.h"
#include "client/session/encode.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"

namespace tt::client {
namespace {

thread_local ProgramTrace* current_trace = nullptr;

constexpr int kSlotBits = 24;  // of a traced handle, below the trace's serial number

uint64_t next_serial() {
  static std::atomic<uint64_t> last{0};
  return ++last & ((uint64_t{1} << (63 - kSlotBits)) - 1);
}

bool equal(const TensorMeta& a, const TensorMeta& b) {
  return a.dtype == b.dtype && a.device == b.device && a.requires_grad == b.requires_grad && a.sizes == b.sizes &&
         a.strides == b.strides && a.offset == b.offset;
}

// By input: whether a recorded calculation leads from it to an output.
std::vector<bool> inputs_with_gradients(const tt::Program& program, size_t inputs) {
  absl::flat_hash_set<Slot> reached(program.outputs().begin(), program.outputs().end());
  const auto& instructions = program.instructions();
  for (auto at = instructions.rbegin(); at != instructions.rend(); ++at) {
    const bool is_recorded = (at->flags & Instruction::kGrad) != 0 && (at->flags & Instruction::kInference) == 0;
    const auto is_reached = [&](Slot slot) { return reached.contains(slot); };
    // Views of one tensor have different names, so a write may lead to any output.
    const bool writes = (at->flags & Instruction::kInto) != 0;
    if (!is_recorded || !(writes || std::any_of(at->results.begin(), at->results.end(), is_reached))) continue;
    for (size_t i = 0; i < at->args.size(); ++i) {
      if (!at->op->params[i].differentiable) continue;
      const Arg& arg = at->args[i];
      if (arg.kind == Arg::Kind::kSlot) reached.insert(arg.slot);
      if (arg.kind == Arg::Kind::kSlots) reached.insert(arg.slots, arg.slots + arg.size);
    }
  }
  std::vector<bool> found;
  for (Slot slot = 1; slot <= inputs; ++slot) found.push_back(reached.contains(slot));
  return found;
}

const TensorMeta& meta_of(const Tensor& tensor) { return *tensor; }

Arg list_of(const std::vector<const TensorMeta*>& tensors) { return Arg(absl::Span<const TensorMeta* const>(tensors)); }

std::vector<const TensorMeta*> pointers_to(absl::Span<const Tensor> tensors) {
  std::vector<const TensorMeta*> pointers;
  for (const Tensor& tensor : tensors) pointers.push_back(tensor.get());
  return pointers;
}

}  // namespace

Program::Program(Ref<Session> session, tt::Program traced, size_t inputs, std::vector<Tensor> captured,
                 std::vector<size_t> order, size_t written, bool exact, std::vector<Output> outputs,
                 std::vector<v1::Site> sites)
    : session_(std::move(session)),
      traced_(std::move(traced)),
      inputs_(inputs),
      captured_(std::move(captured)),
      order_(std::move(order)),
      written_(written),
      exact_(exact),
      outputs_(std::move(outputs)),
      has_gradient_(inputs_with_gradients(traced_, order_.size())),
      sites_(std::move(sites)) {}

Program::~Program() {
  if (number_ == 0) return;
  try {
    session_->drop_program(number_);
  } catch (const Error&) {  // the session has ended
  }
}

void Program::define(uint32_t site) {
  if (number_ != 0) return;
  v1::Frame frame;
  encode_program(traced_, &frame);
  for (v1::Site& line : sites_) frame.mutable_sites()->Add(std::move(line));
  const std::string bytes = frame.SerializeAsString();
  const int64_t size = static_cast<int64_t>(bytes.size());
  const Tensor definition = session_->upload(bytes, DType::kUInt8, {&size, 1}, Device{}, site);
  number_ = session_->define_program(definition, order_.size() - written_, written_, exact_, site);
  sites_.clear();
}

std::vector<Tensor> Program::in_order(absl::Span<const Tensor> inputs) const {
  check(ErrorKind::kType, inputs.size() == inputs_, "[run_program] expected ", inputs_, " inputs, got ", inputs.size());
  for (const Tensor& input : inputs) {
    check(input->session.get() == session_.get(),
          "[run_program] expected tensors of the Program's session, got a tensor of another session");
  }
  std::vector<Tensor> ordered;
  ordered.reserve(order_.size());
  for (size_t index : order_) ordered.push_back(index < inputs_ ? inputs[index] : captured_[index - inputs_]);
  return ordered;
}

const std::vector<TensorMeta>& Program::infer_results(absl::Span<const Tensor> ordered, bool grad) {
  for (const Signature& signature : signatures_) {
    if (signature.grad == grad &&
        std::equal(signature.inputs.begin(), signature.inputs.end(), ordered.begin(), ordered.end(),
                   [](const TensorMeta& a, const Tensor& b) { return equal(a, *b); })) {
      return signature.results;
    }
  }
  const std::vector<const TensorMeta*> metas = pointers_to(ordered);
  const ProgramTypes types(traced_, metas, grad);
  if (signatures_.size() == kMaxSignatures) signatures_.erase(signatures_.begin());  // the oldest
  Signature& made = signatures_.emplace_back();
  made.grad = grad;
  for (const Tensor& tensor : ordered) made.inputs.push_back(meta_of(tensor));
  for (Slot slot : traced_.outputs()) made.results.push_back(types.of(slot));
  return made.results;
}

std::vector<Tensor> Program::run(absl::Span<const Tensor> inputs, const CallOptions& options) {
  static const Op& op = *find_op(op_id::kRunProgram);
  check(ErrorKind::kNotImplemented, !options.autocast.enabled(),
        "[run_program] autocast has no effect on a Program, whose casts are part of it; run it outside autocast");
  check(ErrorKind::kNotImplemented, options.saved == nullptr,
        "[run_program] hooks of saved tensors are not called for the tensors that a Program saves");
  check(!ProgramTrace::of(*session_), "[run_program] a Program cannot be run while another one is traced");
  const std::vector<Tensor> ordered = in_order(inputs);
  const bool grad = options.grad && !options.inference;
  const std::vector<TensorMeta>& metas = infer_results(ordered, grad);
  Tensors results;
  if (!traced_.instructions().empty()) {
    define(options.site);
    const std::vector<const TensorMeta*> all = pointers_to(ordered);
    const absl::Span<const TensorMeta* const> pointers(all);
    const size_t read = all.size() - written_;
    const Arg args[] = {Arg(pointers.first(read)), Arg(pointers.subspan(read)), Arg(number_)};
    std::vector<const TensorMeta*> differentiable;
    for (size_t i = 0; i < read; ++i) {
      if (has_gradient_[i]) differentiable.push_back(all[i]);
    }
    const Arg recorded[] = {list_of(differentiable), args[1], args[2]};
    results = session_->call_recorded(op, args, recorded, metas, options);
  }
  std::vector<Tensor> outputs;
  for (const Output& output : outputs_) {
    switch (output.from) {
      case Output::From::kResult: outputs.push_back(results[output.index]); break;
      case Output::From::kInput: outputs.push_back(inputs[output.index]); break;
      case Output::From::kCaptured: outputs.push_back(captured_[output.index]); break;
    }
  }
  return outputs;
}

std::string Program::explain(absl::Span<const Tensor> inputs, uint32_t site) {
  static const Op& op = *find_op(op_id::kExplainProgram);
  const std::vector<Tensor> ordered = in_order(inputs);
  infer_results(ordered, /*grad=*/true);  // throws what a run would throw
  define(site);
  const std::vector<const TensorMeta*> all = pointers_to(ordered);
  const absl::Span<const TensorMeta* const> pointers(all);
  const size_t read = all.size() - written_;
  const Arg args[] = {Arg(pointers.first(read)), Arg(pointers.subspan(read)), Arg(number_)};
  const Tensors explanation = session_->call(op, args, {.grad = false, .site = site});
  return "# as traced\n" + text() + session_->read(explanation[0], site).bytes;
}

// ---- ProgramTrace

ProgramTrace::ProgramTrace(Ref<Session> session, absl::Span<const Tensor> examples)
    : session_(std::move(session)), serial_(next_serial()) {
  check(current_trace == nullptr, "[trace] this thread is tracing a Program already");
  for (const Tensor& example : examples) {
    check(example->session.get() == session_.get(),
          "[trace] expected tensors of one session, got a tensor of another session");
    check(example->id != 0, "[trace] a tensor of a wrapper subclass has no values in the engine");
    inputs_.push_back(make(meta_of(example)));
  }
  current_trace = this;
}

ProgramTrace::~ProgramTrace() { stop(); }

void ProgramTrace::stop() {
  if (!active_) return;
  active_ = false;
  if (current_trace == this) current_trace = nullptr;
}

ProgramTrace* ProgramTrace::of(const Session& session) {
  return current_trace != nullptr && current_trace->session_.get() == &session ? current_trace : nullptr;
}

ProgramTrace::Pause::Pause() : paused_(std::exchange(current_trace, nullptr)) {}
ProgramTrace::Pause::~Pause() { current_trace = paused_; }

Tensor ProgramTrace::make(TensorMeta meta) {
  check(ErrorKind::kValue, last_ < tt::Program::kMaxNames, "[trace] a Program has at most ", tt::Program::kMaxNames,
        " values");
  return make_ref<Handle>(std::move(meta), session_, kTracedHandle | serial_ << kSlotBits | ++last_);
}

Slot ProgramTrace::slot_of(const Handle& tensor) {
  check(tensor.session.get() == session_.get(),
        "[trace] expected tensors of the traced session, got a tensor of another session");
  check(ErrorKind::kNotImplemented, tensor.id != 0,
        "[trace] a tensor of a wrapper subclass has no values in the engine; trace its __torch_dispatch__ instead");
  if (is_traced(tensor.id)) {
    const uint64_t serial = (tensor.id & ~kTracedHandle) >> kSlotBits;
    check(serial == serial_, "[trace] expected a tensor of this trace, got one of an earlier trace");
    return tensor.id & ((uint64_t{1} << kSlotBits) - 1);
  }
  const auto [at, is_new] = captured_slots_.try_emplace(tensor.id, 0);
  if (is_new) {
    check(ErrorKind::kValue, last_ < tt::Program::kMaxNames, "[trace] a Program has at most ", tt::Program::kMaxNames,
          " values");
    at->second = ++last_;
    captured_.push_back(Tensor(const_cast<Handle*>(&tensor)));
  }
  return at->second;
}

uint32_t ProgramTrace::site_of(uint32_t site) {
  if (site == 0) return 0;
  const auto [at, is_new] = site_numbers_.try_emplace(site, 0);
  if (is_new) {
    at->second = static_cast<uint32_t>(sites_.size() + 1);
    session_->describe_site(site, &sites_.emplace_back());
    sites_.back().set_id(at->second);
  }
  return at->second;
}

// A call may write to what the trace has computed, and to an input if no gradient depends on the write: the history of
// a tensor outside cannot be changed by a run.
void ProgramTrace::check_target(const Op& op, const Handle& target, bool grad, bool records) {
  slot_of(target);
  const Handle& root = target.base ? *target.base : target;
  const uint64_t storage = root.storage_number();
  const auto has_storage = [&](const Tensor& input) { return input->storage_number() == storage; };
  const bool is_input = std::any_of(inputs_.begin(), inputs_.end(), has_storage) ||
                        std::any_of(captured_.begin(), captured_.end(), has_storage) || !is_traced(root.id);
  check(ErrorKind::kNotImplemented, !target.is_data, "[", op.name, "] a traced function cannot write to `.data`");
  if (!is_input) return;
  check(ErrorKind::kNotImplemented, !records && !(grad && (root.requires_grad || target.requires_grad)), "[", op.name,
        "] a traced function cannot write to its inputs while gradients are recorded; use torch.no_grad()");
  written_.push_back(storage);
}

Tensors ProgramTrace::results_of(const Op& op, Args args, Inference& inference) {
  const Handle* viewed = nullptr;
  if (inference.alias) {
    for (const Arg& arg : args) {
      for_each_tensor(arg, [&](const Handle* tensor) { viewed = viewed ? viewed : tensor; });
    }
  }
  Tensors results;
  for (TensorMeta& meta : inference.outputs) {
    results.push_back(make(std::move(meta)));
    if (!viewed) continue;
    Handle& view = *results.back();
    if (op.differentiable) {
      view.base = viewed->base ? viewed->base : Tensor(const_cast<Handle*>(viewed));
    } else {
      view.is_data = true;
    }
    view.viewed_storage = viewed->storage_number();
    view.viewed_storage_bytes = viewed->storage_bytes();
  }
  return results;
}

Tensors ProgramTrace::call(const Op& op, Args args, const CallOptions& options) {
  op.check_args(args);
  check(ErrorKind::kNotImplemented, !op.is_dynamic, "[", op.name,
        "] the sizes of its results depend on values, which do not exist while a Program is traced");
  check(ErrorKind::kNotImplemented, !reaches_outside(op.name), "[", op.name,
        "] has effects outside of the session; a Program cannot contain it");
  check(ErrorKind::kNotImplemented, !options.autocast.enabled(), "[", op.name,
        "] a Program cannot be traced under autocast; convert tensors with .to()");
  check(ErrorKind::kNotImplemented, options.saved == nullptr, "[", op.name,
        "] a Program cannot be traced with hooks of saved tensors");
  const bool grad = options.grad && !options.inference;
  const DefaultFloat default_float(options.default_float);
  Inference inference;
  infer(op, args, grad, &inference);
  for (size_t i = 0; i < args.size(); ++i) {
    if (!op.params[i].written) continue;
    for_each_tensor(args[i], [&](const Handle* tensor) { check_target(op, *tensor, grad, /*records=*/false); });
  }
  std::vector<Slot> lists;  // spans into it must stay valid
  size_t entries = 0;
  for (const Arg& arg : args) entries += arg.kind == Arg::Kind::kTensors ? arg.size : 0;
  lists.reserve(entries);
  std::vector<Arg> named(args.begin(), args.end());
  for (Arg& arg : named) {
    if (arg.kind == Arg::Kind::kTensor) {
      arg = slot_arg(slot_of(*static_cast<const Handle*>(arg.tensor)));
    } else if (arg.kind == Arg::Kind::kTensors) {
      const Slot* const first = lists.data() + lists.size();
      for (const TensorMeta* tensor : arg.list()) {
        lists.push_back(tensor ? slot_of(*static_cast<const Handle*>(tensor)) : 0);
      }
      arg.kind = Arg::Kind::kSlots;
      arg.slots = first;
    }
  }
  const bool into = !options.into.empty();
  Tensors results;
  if (into) {
    check(options.into.size() == inference.outputs.size(), "[", op.name, "] expected ", inference.outputs.size(),
          " out tensors, got ", options.into.size());
    for (size_t i = 0; i < options.into.size(); ++i) {
      Handle& target = *options.into[i];
      check_out_variant(op, inference.outputs[i], target, target.is_leaf() && !is_traced(target.id), grad);
      check_target(op, target, grad, inference.outputs[i].requires_grad);
      if (is_traced(target.id)) target.requires_grad |= inference.outputs[i].requires_grad;
    }
    results.assign(options.into.begin(), options.into.end());
  } else {
    results = results_of(op, args, inference);
  }
  std::vector<Slot> names;
  for (const Tensor& result : results) names.push_back(slot_of(*result));
  Instruction& instruction = program_.add(op, absl::MakeConstSpan(named).first(count_given(op, args)), names);
  instruction.flags =
      static_cast<uint8_t>((options.grad ? Instruction::kGrad : 0) | (options.inference ? Instruction::kInference : 0) |
                           (into ? Instruction::kInto : 0) | Instruction::flags_of(options.default_float));
  instruction.site = site_of(options.site);
  return results;
}

Program::Output ProgramTrace::output_of(const Tensor& output, std::vector<Slot>* results) {
  using From = Program::Output::From;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] == output) return {From::kInput, i};
  }
  if (!is_traced(output->id)) {
    slot_of(*output);
    const auto at = std::find(captured_.begin(), captured_.end(), output);
    return {From::kCaptured, static_cast<size_t>(at - captured_.begin())};
  }
  const Slot slot = slot_of(*output);
  const auto found = std::find(results->begin(), results->end(), slot);
  if (found != results->end()) return {From::kResult, static_cast<size_t>(found - results->begin())};
  const uint64_t storage = output->storage_number();
  const auto shares = [&](const Tensor& other) { return other->storage_number() == storage; };
  check(
      ErrorKind::kNotImplemented,
      std::none_of(inputs_.begin(), inputs_.end(), shares) && std::none_of(captured_.begin(), captured_.end(), shares),
      "[trace] an output of a traced function cannot be a view of an input; return a copy (.clone())");
  check(ErrorKind::kNotImplemented, storages_.try_emplace(storage, slot).second,
        "[trace] two outputs of a traced function cannot be views of one tensor; return copies (.clone())");
  results->push_back(slot);
  return {From::kResult, results->size() - 1};
}

Ref<Program> ProgramTrace::finish(absl::Span<const Tensor> outputs, bool exact) {
  check(active_, "[trace] the trace has ended");
  const absl::Cleanup stopped = [this] { stop(); };
  std::vector<Program::Output> returned;
  std::vector<Slot> results;
  for (const Tensor& output : outputs) returned.push_back(output_of(output, &results));
  const size_t count = inputs_.size() + captured_.size();
  const auto input = [&](size_t i) -> const Tensor& {
    return i < inputs_.size() ? inputs_[i] : captured_[i - inputs_.size()];
  };
  const auto is_written = [&](size_t i) {
    return std::find(written_.begin(), written_.end(), input(i)->storage_number()) != written_.end();
  };
  std::vector<size_t> order;
  for (bool written : {false, true}) {
    for (size_t i = 0; i < count; ++i) {
      if (is_written(i) == written) order.push_back(i);
    }
  }
  size_t written = 0;
  absl::flat_hash_map<Slot, Slot> names;
  for (size_t i : order) {
    names.emplace(slot_of(*input(i)), names.size() + 1);
    written += is_written(i);
  }
  program_.rename([&](Slot slot) { return names.try_emplace(slot, names.size() + 1).first->second; });
  for (Slot& slot : results) slot = names.at(slot);
  program_.set_outputs(results);
  return Ref<Program>(new Program(session_, std::move(program_), inputs_.size(), std::move(captured_), std::move(order),
                                  written, exact, std::move(returned), std::move(sites_)));
}

}  // namespace tt::client
