#include "client/session/program_trace.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "client/link/outside.h"
#include "client/session/encode.h"
#include "client/session/leaf_grads.h"
#include "engine/schema/autocast.h"
#include "engine/schema/autocast_result.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "engine/schema/read_only.h"

namespace tt::client {
namespace {

thread_local ProgramTrace* current_trace = nullptr;
thread_local ProgramTrace* open_trace = nullptr;  // the same, but also while it is paused

constexpr uint64_t kTracedHandle = ProgramTrace::kTracedHandle;
constexpr int kSlotBits = 24;  // of a traced handle, below the trace's serial number

uint64_t next_serial() {
  static std::atomic<uint64_t> last{0};
  return ++last & ((uint64_t{1} << (63 - kSlotBits)) - 1);
}

// Whether a node of the tensor's graph has a property.
bool has_node(const Tensor& tensor, absl::FunctionRef<bool(const GraphNode&)> is_sought) {
  if (!tensor->requires_grad) return false;
  absl::flat_hash_set<const GraphNode*> visited;
  std::vector<const GraphNode*> left = {edge_of(tensor).node.get()};
  while (!left.empty()) {
    const GraphNode* node = left.back();
    left.pop_back();
    if (!visited.insert(node).second) continue;
    if (is_sought(*node)) return true;
    for (const GraphEdge& edge : node->edges) {
      if (edge.node) left.push_back(edge.node.get());
    }
  }
  return false;
}

// Whether a backward pass from the tensor needs what an earlier pass has freed.
bool has_freed_graph(const Tensor& tensor) {
  return has_node(tensor, [](const GraphNode& node) { return node.freed != GraphNode::Freed::kNo; });
}

bool reaches(const Tensor& tensor, const absl::flat_hash_set<const GraphNode*>& nodes) {
  return !nodes.empty() && has_node(tensor, [&](const GraphNode& node) { return nodes.contains(&node); });
}

}  // namespace

std::atomic<int> ProgramTrace::active_count_{0};

// The trace of numbers; null after it.
struct ProgramTrace::Number::Scope {
  explicit Scope(ProgramTrace* of) : trace(of) {}
  std::atomic<ProgramTrace*> trace;
};

ProgramTrace::ProgramTrace(Ref<Session> session, absl::Span<const Tensor> examples, const TraceOptions& options)
    : session_(std::move(session)),
      serial_(next_serial()),
      first_sequence_(Ref<GraphNode>(new GraphNode(nullptr, nullptr))->sequence()),
      sizes_((options.records_sizes || !options.are_sizes_constant) && session_->engine().size_expressions()),
      current_site_(options.current_site),
      only_metadata_(options.only_metadata),
      records_sizes_(options.records_sizes) {
  check(!records_sizes_ || (only_metadata_ && examples.empty()),
        "[trace] sizes are recorded by a trace of metadata, to which inputs are added");
  check(current_trace == nullptr, "[trace] this thread is tracing a Program already");
  for (const Tensor& example : examples) {
    check(example->session.get() == session_.get(),
          "[trace] expected tensors of one session, got a tensor of another session");
    check(example->id != 0, "[trace] a tensor of a wrapper subclass has no values in the engine");
    inputs_.push_back(make(*example));
  }
  std::vector<const TensorMeta*> metas;
  metas.reserve(inputs_.size());
  for (const Tensor& input : inputs_) metas.push_back(input.get());
  sizes_.add_inputs(metas, [&](size_t input, size_t dim) {
    return std::any_of(options.constant_sizes.begin(), options.constant_sizes.end(),
                       [&](const TraceOptions::Size& size) { return size.input == input && size.dim == dim; });
  });
  current_trace = open_trace = this;
  active_count_.fetch_add(1, std::memory_order_relaxed);
}

ProgramTrace::~ProgramTrace() { stop(); }

Tensor ProgramTrace::add_input(const Tensor& example, absl::Span<const size_t> dims) {
  check(only_metadata_, "[trace] expected a trace of metadata; inputs of a Program are given when it begins");
  check(example->session.get() == session_.get() && example->id != 0,
        "[trace] expected a tensor of the traced session that has values");
  check(dims.empty() || records_sizes_, "[trace] expected a trace that records sizes");
  inputs_.push_back(make(*example));
  if (records_sizes_) sizes_.add_input(slot_of(*inputs_.back()), *inputs_.back(), dims);
  return inputs_.back();
}

std::shared_ptr<SizeChecks> ProgramTrace::size_checks() {
  check(active_ && records_sizes_, "[trace] expected a trace that records sizes and has not ended");
  absl::flat_hash_map<Slot, Slot> names;
  std::vector<TensorMeta> inputs, captured;
  for (const Tensor& input : inputs_) {
    names.emplace(slot_of(*input), names.size() + 1);
    inputs.push_back(*input);
  }
  for (const Tensor& tensor : captured_) {
    names.emplace(slot_of(*tensor), names.size() + 1);
    captured.push_back(*tensor);
  }
  program_.rename([&](Slot slot) { return names.try_emplace(slot, names.size() + 1).first->second; });
  std::vector<SizeRequirement> requirements = sizes_.take_requirements([&](Slot slot) { return names.at(slot); });
  return std::make_shared<SizeChecks>(std::move(program_), std::move(inputs), std::move(captured),
                                      std::move(requirements), sizes_.ranks());
}

void ProgramTrace::stop() {
  if (!active_) return;
  active_ = false;
  active_count_.fetch_sub(1, std::memory_order_relaxed);
  if (current_trace == this) current_trace = nullptr;
  if (open_trace == this) open_trace = nullptr;
  if (scope_) scope_->trace.store(nullptr, std::memory_order_relaxed);
  for (ChangedGrad& grad : changed_grads_) grad.leaf->grad = std::move(grad.before);
}

ProgramTrace* ProgramTrace::current(const Session& session) {
  return current_trace != nullptr && current_trace->session_.get() == &session ? current_trace : nullptr;
}

ProgramTrace* ProgramTrace::Number::trace() const {
  ProgramTrace* const trace = scope_ ? scope_->trace.load(std::memory_order_relaxed) : nullptr;
  check(trace == nullptr || trace == open_trace, "[trace] a size belongs to a trace of another thread");
  return trace;
}

bool ProgramTrace::Number::is_of_program() const {
  const ProgramTrace* const at = number_.is_constant() ? nullptr : trace();
  return at != nullptr && !at->only_metadata_;
}

int64_t ProgramTrace::Number::constant() const {
  ProgramTrace* const at = trace();
  if (at == nullptr) return number_.value;
  return at->sizes_.constant(number_, at->program_.instructions().size(), [at] { return at->where(); });
}

int64_t ProgramTrace::Number::mark() const {
  ProgramTrace* const at = trace();
  if (at == nullptr) return number_.value;
  return at->sizes_.mark(number_, at->program_.instructions().size(), [at] { return at->where(); });
}

ProgramTrace::Number ProgramTrace::Number::combine(SizeTerm::Kind kind, const Number& a, const Number& b) {
  ProgramTrace* const in_a = a.trace();
  ProgramTrace* const at = in_a != nullptr ? in_a : b.trace();
  if (at == nullptr) {
    const SizeTerm terms[] = {{SizeTerm::Kind::kConstant, a.value()}, {SizeTerm::Kind::kConstant, b.value()}, {kind}};
    return Number(evaluate(terms, [](const SizeTerm&) { return int64_t{0}; }));
  }
  const auto of = [&](const Number& n) { return n.trace() == nullptr ? TracedNumber{n.value()} : n.number_; };
  return Number(
      at->sizes_.combine(kind, of(a), of(b), at->program_.instructions().size(), [at] { return at->where(); }),
      at->scope_);
}

bool ProgramTrace::Number::compare(SizeRequirement::Relation relation, const Number& a, const Number& b) {
  ProgramTrace* const in_a = a.trace();
  ProgramTrace* const at = in_a != nullptr ? in_a : b.trace();
  if (at == nullptr) return TracedSizes(false).compare(relation, {a.value()}, {b.value()}, 0, [] { return ""; });
  const auto of = [&](const Number& n) { return n.trace() == nullptr ? TracedNumber{n.value()} : n.number_; };
  return at->sizes_.compare(relation, of(a), of(b), at->program_.instructions().size(), [at] { return at->where(); });
}

ProgramTrace* ProgramTrace::open_trace_of(const Handle& tensor) {
  if (open_trace == nullptr || tensor.session.get() != open_trace->session_.get()) return nullptr;
  return (tensor.id & ~kTracedHandle) >> kSlotBits == open_trace->serial_ ? open_trace : nullptr;
}

ProgramTrace::Number ProgramTrace::size_of(const Handle& tensor, size_t dim) {
  const TracedNumber size =
      sizes_.size_of(slot_of(tensor), tensor, dim, program_.instructions().size(), [this] { return where(); });
  return number(size);
}

ProgramTrace::Number ProgramTrace::number(const TracedNumber& traced) {
  if (traced.is_constant()) return Number(traced.value);
  if (!scope_) scope_ = std::make_shared<Number::Scope>(this);
  return Number(traced, scope_);
}

ProgramTrace::Number ProgramTrace::number_of(int64_t marked) { return number(sizes_.number_of(marked)); }

void ProgramTrace::require(SizeTerm::Kind kind, const Handle& tensor, size_t dim, int64_t value) {
  sizes_.require_value({kind, static_cast<int64_t>(dim), slot_of(tensor)}, value, program_.instructions().size(),
                       [this] { return where(); });
}

void ProgramTrace::require_stride(const Handle& tensor, size_t dim) {
  require(SizeTerm::Kind::kStride, tensor, dim, tensor.strides[dim]);
}

void ProgramTrace::require_offset(const Handle& tensor) { require(SizeTerm::Kind::kOffset, tensor, 0, tensor.offset); }

void ProgramTrace::require_contiguity(const Handle& tensor) {
  require(SizeTerm::Kind::kIsContiguous, tensor, 0, tensor.is_contiguous());
}

void ProgramTrace::require_sizes(const Handle& tensor) {
  for (size_t dim = 0; dim < tensor.sizes.size(); ++dim) size_of(tensor, dim).constant();
}

std::string ProgramTrace::where() const { return current_site_ ? session_->site_name(current_site_()) : ""; }

bool ProgramTrace::is_active() { return current_trace != nullptr; }
ProgramTrace* ProgramTrace::active() { return current_trace; }

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
    sizes_.add_captured(last_, tensor);
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
  forget_casts();
  const Handle& root = target.base ? *target.base : target;
  const uint64_t storage = root.storage_number();
  const auto has_storage = [&](const Tensor& input) { return input->storage_number() == storage; };
  const bool is_input = std::any_of(inputs_.begin(), inputs_.end(), has_storage) ||
                        std::any_of(captured_.begin(), captured_.end(), has_storage) || !is_traced(root.id);
  if (!is_input) return;
  check(ErrorKind::kNotImplemented, !records && !(grad && (root.requires_grad || target.requires_grad)), "[", op.name,
        "] a traced function cannot write to its inputs while gradients are recorded; use torch.no_grad()");
  written_.push_back(storage);
}

void ProgramTrace::read_grad(const Tensor& tensor) {
  const auto is_tensor = [&](const auto& known) { return known.first == tensor; };
  const bool is_changed = std::any_of(changed_grads_.begin(), changed_grads_.end(),
                                      [&](const ChangedGrad& grad) { return grad.leaf == tensor; });
  const bool is_result = is_traced(tensor->id) && std::find(inputs_.begin(), inputs_.end(), tensor) == inputs_.end();
  if (is_changed || is_result || std::any_of(read_grads_.begin(), read_grads_.end(), is_tensor)) return;
  slot_of(*tensor);
  read_grads_.emplace_back(tensor, tensor->grad);
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
      view.set_base(viewed->base ? viewed->base : Tensor(const_cast<Handle*>(viewed)));
    } else {
      view.is_data = true;
    }
    view.viewed_storage = viewed->storage_number();
    view.viewed_storage_bytes = viewed->storage_bytes();
  }
  return results;
}

Tensors ProgramTrace::call(const Op& op, Args args, const CallOptions& options) {
  if (options.autocast.enabled() && !only_metadata_) [[unlikely]]
    return call_with_casts(op, args, options);
  if (!sizes_.has_marks(args)) [[likely]]
    return call_sized(op, args, options, {});
  std::vector<Arg> numbers(args.begin(), args.end());
  std::vector<std::vector<int64_t>> lists;
  const std::vector<SizeArgument> sizes = sizes_.take_marks(&numbers, &lists);
  return call_sized(op, numbers, options, sizes);
}

Tensors ProgramTrace::call_with_casts(const Op& op, Args args, const CallOptions& options) {
  op.check_args(args);
  CallOptions plain = options;
  plain.autocast = {};
  if (!options.into.empty() || !has_autocast_policy(op)) return call(op, args, plain);
  const AutocastRule rule = autocast_rule(op, args, options.autocast);
  Tensors casts;  // keeps them alive during the call
  const AutocastArgs changed(rule, args, [&](const TensorMeta* t) {
    const Tensor source(const_cast<Handle*>(static_cast<const Handle*>(t)));
    return casts.emplace_back(cast(source, *rule.dtype, options)).get();
  });
  Tensors results = call(op, changed.args(), plain);
  for (Tensor& result : results) {
    const std::optional<DType> dtype = autocast_result(op, args, options.autocast, result->dtype);
    if (dtype) result = cast(result, *dtype, options);
  }
  return results;
}

// As in the engine (engine/dispatch/autocast.h), the calls of a region use one cast of a leaf, in which its gradients
// are added.
Tensor ProgramTrace::cast(const Tensor& tensor, DType dtype, const CallOptions& options) {
  const bool records = options.grad && !options.inference;
  const bool keeps = options.autocast.cache && dtype == options.autocast.dtype(tensor->device.type) &&
                     tensor->dtype == DType::kFloat32 && tensor->requires_grad && tensor->is_leaf() && !tensor->base;
  if (keeps) {
    const auto kept = casts_.find(tensor->id);
    if (kept != casts_.end() && kept->second.second->dtype == dtype && kept->second.second->requires_grad == records)
      return kept->second.second;
  }
  static const Op& op = *find_op(op_id::kToDtype);
  CallOptions plain = options;
  plain.autocast = {};
  const Arg args[] = {Arg(tensor.get()), Arg(dtype)};
  Tensor made = call(op, args, plain)[0];
  if (keeps) casts_.insert_or_assign(tensor->id, std::pair(tensor, made));
  return made;
}

void ProgramTrace::infer_example(const Op& op, Args args, Inference* inferred) const {
  std::vector<Arg> numbers(args.begin(), args.end());
  std::vector<std::vector<int64_t>> lists;
  sizes_.take_marks(&numbers, &lists);
  infer(op, numbers, /*grad_enabled=*/false, inferred);
}

Tensors ProgramTrace::call_sized(const Op& op, Args args, const CallOptions& options,
                                 absl::Span<const SizeArgument> sizes) {
  op.check_args(args);
  check(ErrorKind::kNotImplemented, !op.is_dynamic, "[", op.name,
        "] the sizes of its results depend on values, which do not exist while a Program is traced");
  check(ErrorKind::kNotImplemented, !reaches_outside(op.name), "[", op.name,
        "] has effects outside of the session; a Program cannot contain it");
  check(ErrorKind::kNotImplemented, !records_sizes_ || !options.autocast.enabled(), "[", op.name,
        "] a trace that records sizes cannot be under autocast");
  check(ErrorKind::kNotImplemented, options.saved == nullptr || (*options.saved)->recomputation() != nullptr, "[",
        op.name, "] a Program cannot be traced with hooks of saved tensors");
  const bool grad = options.grad && !options.inference;
  const DefaultFloat default_float(options.default_float);
  Inference inference;
  if (options.autocast.enabled() && options.into.empty() && has_autocast_policy(op)) {
    infer_with_autocast(op, args, options.autocast, grad, &inference);
  } else {
    infer(op, args, grad, &inference);
  }
  for (size_t i = 0; i < args.size() && writes_arguments(op, args); ++i) {
    if (!op.params[i].written) continue;
    for_each_tensor(args[i], [&](const Handle* tensor) { check_target(op, *tensor, grad, /*records=*/false); });
  }
  Tensors results;
  if (options.into.empty()) {
    results = results_of(op, args, inference);
  } else {
    check(options.into.size() == inference.outputs.size(), "[", op.name, "] expected ", inference.outputs.size(),
          " out tensors, got ", options.into.size());
    for (size_t i = 0; i < options.into.size(); ++i) {
      Handle& target = *options.into[i];
      check_out_variant(op, inference.outputs[i], target, target.is_leaf(), grad);
      check_target(op, target, grad, inference.outputs[i].requires_grad);
      if (grad) check_writable(target);
      if (grad && inference.outputs[i].requires_grad) check_own(target);
    }
    results.assign(options.into.begin(), options.into.end());
  }
  add(op, args, absl::MakeConstSpan(results), options, sizes);
  for (size_t i = 0; i < options.into.size(); ++i) {
    Handle& target = *options.into[i];
    if (is_traced(target.id)) target.requires_grad |= inference.outputs[i].requires_grad;
  }
  if (grad) record(op, args, absl::MakeConstSpan(results), !options.into.empty());
  return results;
}

// A value that the function has made becomes a leaf, such as the arguments of the transforms of torch.func.
Tensors ProgramTrace::set_requires_grad(const Op& op, Args args, const CallOptions& options) {
  const Tensor leaf(const_cast<Handle*>(static_cast<const Handle*>(args[0].tensor)));
  const bool is_own = is_traced(leaf->id) && std::find(inputs_.begin(), inputs_.end(), leaf) == inputs_.end();
  check(ErrorKind::kNotImplemented, !only_metadata_ && is_own, "[", op.name,
        "] a Program cannot contain it for a tensor that exists outside, because it would change that; call it with "
        "True for a result of the function, such as detach()");
  check(ErrorKind::kNotImplemented, args[1].to_bool(), "[", op.name,
        "] a Program cannot contain it with False, which removes what was recorded for the tensor; use detach()");
  slot_of(*leaf);
  check(ErrorKind::kNotImplemented, !is_read(leaf), "[", op.name,
        "] a Program cannot contain it after a call that has used the tensor");
  add(op, args, {}, options, {});
  own_leaves_.push_back(leaf);
  return {};
}

Tensors ProgramTrace::call_with_metas(const Op& op, Args args, const CallOptions& options) {
  if (op.id == op_id::kRequiresGrad) return set_requires_grad(op, args, options);
  check(ErrorKind::kNotImplemented, op.id == op_id::kBackward, "[", op.name,
        "] a Program cannot contain it: it changes what the tape records or runs in the client");
  Inference inference;
  infer_in_program(op, args, options.grad, &inference);
  for_each_tensor(args[2], [&](const Handle* tensor) { differentiated_.insert(tensor->id); });
  differentiates_ = true;
  const Tensors results = results_of(op, args, inference);
  add(op, args, absl::MakeConstSpan(results), options, {});
  return results;
}

// Appends the instruction.
void ProgramTrace::add(const Op& op, Args args, absl::Span<const Tensor> results, const CallOptions& options,
                       absl::Span<const SizeArgument> sizes) {
  if (only_metadata_ && !records_sizes_) return;
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
  std::vector<Slot> names;
  for (const Tensor& result : results) names.push_back(slot_of(*result));
  const size_t given = std::max(count_given(op, args), sizes.empty() ? size_t{0} : sizes.back().arg + size_t{1});
  Instruction& instruction = program_.add(op, absl::MakeConstSpan(named).first(given), names);
  instruction.flags = static_cast<uint8_t>(
      (options.grad ? Instruction::kGrad : 0) | (options.inference ? Instruction::kInference : 0) |
      (options.into.empty() ? 0 : Instruction::kInto) | Instruction::flags_of(options.default_float) |
      (depth_ == 0        ? 0
       : region_ % 2 == 1 ? Instruction::kRecomputeOdd
                          : Instruction::kRecomputeEven));
  instruction.site = site_of(options.site);
  for (SizeArgument size : sizes) {
    size.instruction = static_cast<uint32_t>(program_.instructions().size() - 1);
    program_.add_size(size);
  }
  std::vector<const TensorMeta*> metas;
  for (const Tensor& result : results) metas.push_back(result.get());
  sizes_.add_call(program_, metas);
}

ProgramTrace::ChangedGrad& ProgramTrace::changed(const Tensor& leaf) {
  check(leaf->is_leaf(),
        "[trace] expected a leaf whose .grad the function changes, got a result of a recorded operation");
  for (ChangedGrad& grad : changed_grads_) {
    if (grad.leaf == leaf) return grad;
  }
  slot_of(*leaf);
  return changed_grads_.emplace_back(ChangedGrad{.leaf = leaf, .before = leaf->grad});
}

std::vector<Tensor> ProgramTrace::leaves_with_grad(const Tensor& grad) const {
  std::vector<Tensor> leaves;
  const auto add = [&](const Tensor& leaf) {
    if (leaf->grad == grad && std::find(leaves.begin(), leaves.end(), leaf) == leaves.end()) leaves.push_back(leaf);
  };
  for (const ChangedGrad& each : changed_grads_) add(each.leaf);
  for (const auto& [leaf, before] : read_grads_) add(leaf);
  return leaves;
}

void ProgramTrace::set_grad(const Tensor& leaf, Tensor grad) {
  ChangedGrad& changed_grad = changed(leaf);
  if (grad) slot_of(*grad);
  // What a backward pass has accumulated may have been read: with a gradient from before the run it would differ.
  changed_grad.begins_without |= changed_grad.accumulated && !changed_grad.is_set;
  changed_grad.is_set = true;
  changed_grad.set = grad;
  changed_grad.accumulated = Tensor();
  leaf->grad = std::move(grad);
}

void ProgramTrace::accumulate_grad(const Tensor& leaf, Tensor gradient, uint32_t site) {
  if (!leaf->grad) {
    ChangedGrad& grad = changed(leaf);
    leaf->grad = grad.accumulated = std::move(gradient);
    return;
  }
  // Runs add to the same tensor: one that the function has set or computed, or one from before the trace.
  read_grad(leaf);
  static const Op& op = *find_op(op_id::kAdd);
  const Arg args[] = {Arg(leaf->grad.get()), Arg(gradient.get()), Arg(int64_t{1})};
  CallOptions options;
  options.grad = false;
  options.site = site;
  options.into = {&leaf->grad, 1};
  call(op, args, options);
}

// Whether a call reads or writes the value, or a view of it.
bool ProgramTrace::is_read(const Tensor& value) const {
  const Slot name = value->id & ((uint64_t{1} << kSlotBits) - 1);
  const auto has_name = [&](absl::Span<const Slot> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return std::any_of(program_.instructions().begin(), program_.instructions().end(), [&](const Instruction& one) {
    return ((one.flags & Instruction::kInto) != 0 && has_name(one.results)) ||
           std::any_of(one.args.begin(), one.args.end(), [&](const Arg& arg) { return has_name(names_in(arg)); });
  });
}

std::vector<Program::LeafGrad> ProgramTrace::grads(std::vector<Slot>* results) {
  std::vector<Program::LeafGrad> grads;
  constexpr Program::Output kNone{Program::Output::From::kNone, 0};
  for (const ChangedGrad& changed : changed_grads_) {
    // A leaf of the function's own ends with it.
    if (std::find(own_leaves_.begin(), own_leaves_.end(), changed.leaf) != own_leaves_.end()) continue;
    Program::LeafGrad& grad = grads.emplace_back();
    grad.leaf = source_of(changed.leaf);
    grad.is_set = changed.is_set;
    grad.begins_without = changed.begins_without;
    grad.set = changed.set ? output_of(changed.set, results) : kNone;
    grad.accumulated = kNone;
    if (!changed.accumulated) continue;
    const size_t before = results->size();
    grad.accumulated = output_of(changed.accumulated, results);
    grad.is_read = results->size() == before || is_read(changed.accumulated);
  }
  return grads;
}

void ProgramTrace::check_gradients_of(const Tensor& output) const {
  if (!is_traced(output->id) || !output->requires_grad) return;
  check(ErrorKind::kNotImplemented, !has_node(output, [](const GraphNode& node) { return node.is_recorded_pass; }),
        "[trace] a traced function cannot return a gradient with a history (create_graph=True); return it without "
        "(.detach())");
  absl::flat_hash_set<const GraphNode*> nodes;
  for (const Tensor& leaf : own_leaves_) nodes.insert(edge_of(leaf).node.get());
  check(ErrorKind::kNotImplemented, !reaches(output, nodes),
        "[trace] a traced function cannot return a tensor whose history begins at a tensor that it has made itself; "
        "return it without (.detach())");
  nodes.clear();
  if (written_.empty()) return;
  const auto add_written = [&](const Tensor& input) {
    const bool is_written = std::find(written_.begin(), written_.end(), input->storage_number()) != written_.end();
    if (is_written && input->requires_grad) nodes.insert(edge_of(input).node.get());
  };
  std::for_each(inputs_.begin(), inputs_.end(), add_written);
  std::for_each(captured_.begin(), captured_.end(), add_written);
  check(ErrorKind::kNotImplemented, !reaches(output, nodes),
        "[trace] a traced function cannot return a tensor whose gradient leads to an input that the function writes; "
        "return it without gradients (.detach())");
}

Tensor ProgramTrace::without_freed_graph(const Tensor& output) {
  static const Op& op = *find_op(op_id::kDetach);
  const Arg args[] = {Arg(output.get())};
  CallOptions options;
  options.grad = false;
  return call(op, args, options)[0];
}

Program::Output ProgramTrace::source_of(const Tensor& input) const {
  const auto given = std::find(inputs_.begin(), inputs_.end(), input);
  if (given != inputs_.end()) return {Program::Output::From::kInput, static_cast<size_t>(given - inputs_.begin())};
  const auto captured = std::find(captured_.begin(), captured_.end(), input);
  check(ErrorKind::kNotImplemented, captured != captured_.end(),
        "[trace] a traced function cannot change .grad of a tensor that it has made itself");
  return {Program::Output::From::kCaptured, static_cast<size_t>(captured - captured_.begin())};
}

Program::Output ProgramTrace::output_of(const Tensor& output, std::vector<Slot>* results) {
  using From = Program::Output::From;
  const bool is_input = std::find(inputs_.begin(), inputs_.end(), output) != inputs_.end();
  if (is_input || !is_traced(output->id)) {
    slot_of(*output);
    return source_of(output);
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

Ref<Program> ProgramTrace::finish(absl::Span<const Tensor> outputs, const Program::RunOptions& options) {
  check(active_, "[trace] the trace has ended");
  check(ErrorKind::kValue, options.memory_budget >= 0 && options.memory_budget <= 1,
        "[trace] expected a memory budget from 0 to 1, got ", options.memory_budget);
  check(!only_metadata_, "[trace] a trace of metadata has no Program");
  const absl::Cleanup stopped = [this] { stop(); };
  std::vector<Program::Output> returned;
  std::vector<Slot> results;
  absl::flat_hash_map<const Handle*, Tensor> freed;  // outputs whose graph was freed: without it
  for (const Tensor& output : outputs) {
    if (differentiates_ && is_traced(output->id) && has_freed_graph(output)) {
      Tensor& plain = freed[output.get()];
      if (!plain) plain = without_freed_graph(output);
      returned.push_back(output_of(plain, &results));
      returned.back().is_freed = true;
    } else {
      check_gradients_of(output);
      returned.push_back(output_of(output, &results));
    }
  }
  std::vector<Program::LeafGrad> leaf_grads = grads(&results);
  std::vector<Program::ReadGrad> read_grads;
  read_grads.reserve(read_grads_.size());
  for (const auto& [tensor, grad] : read_grads_) read_grads.push_back({source_of(tensor), grad});
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
  std::vector<Program::InputKind> kinds;
  std::vector<Program::InputUse> uses;
  absl::flat_hash_map<Slot, Slot> names;
  for (size_t i : order) {
    names.emplace(slot_of(*input(i)), names.size() + 1);
    written += is_written(i);
    kinds.push_back({input(i)->dtype, input(i)->device});
    if (differentiates_)
      uses.push_back({input(i)->requires_grad, differentiated_.contains(input(i)->id), hooks_of(*input(i))});
  }
  program_.rename([&](Slot slot) { return names.try_emplace(slot, names.size() + 1).first->second; });
  for (Slot& slot : results) slot = names.at(slot);
  program_.set_outputs(results);
  std::vector<SizeRequirement> requirements = sizes_.take_requirements([&](Slot slot) { return names.at(slot); });
  return Ref<Program>(new Program(session_, std::move(program_), inputs_.size(), std::move(captured_), std::move(order),
                                  std::move(kinds), written, options, std::move(returned), std::move(leaf_grads),
                                  std::move(read_grads), std::move(uses), std::move(sites_), std::move(requirements),
                                  sizes_.ranks()));
}

}  // namespace tt::client
