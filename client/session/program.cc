#include "client/session/program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "client/session/encode.h"
#include "client/session/graph.h"
#include "client/session/leaf_grads.h"
#include "client/session/program_trace.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "engine/schema/sized_program.h"
#include "formats/program_frame.h"

namespace tt::client {
namespace {

bool equal(const TensorMeta& a, const TensorMeta& b) {
  return a.dtype == b.dtype && a.device == b.device && a.requires_grad == b.requires_grad && a.sizes == b.sizes &&
         a.strides == b.strides && a.offset == b.offset;
}

uint64_t hash_of(absl::Span<const Tensor> tensors, bool grad) {
  uint64_t hash = absl::HashOf(grad);
  for (const Tensor& tensor : tensors) {
    const TensorMeta& meta = *tensor;
    hash = absl::HashOf(hash, meta.dtype, meta.device.encode(), meta.requires_grad, absl::MakeConstSpan(meta.sizes),
                        absl::MakeConstSpan(meta.strides), meta.offset);
  }
  return hash;
}

// By result that is a view: the value that it is a view of, which is none itself.
absl::flat_hash_map<Slot, Slot> bases_of_views(const tt::Program& program) {
  absl::flat_hash_map<Slot, Slot> bases;
  for (const Instruction& instruction : program.instructions()) {
    if (!instruction.op->is_view || (instruction.flags & Instruction::kInto) != 0 || instruction.args.empty()) continue;
    for (Slot of : names_in(instruction.args[0])) {
      const auto known = bases.find(of);
      const Slot base = known == bases.end() ? of : known->second;
      for (Slot view : instruction.results) bases[view] = base;
    }
  }
  return bases;
}

// By input: whether a recorded calculation leads from it to an output. `types`: of a run with gradients.
std::vector<bool> inputs_with_gradients(const tt::Program& program, const ProgramTypes& types, size_t inputs) {
  const absl::flat_hash_map<Slot, Slot> bases = bases_of_views(program);
  const Slot any_input = 0;  // inputs may be views of each other
  const auto storage = [&](Slot slot) {
    const auto known = bases.find(slot);
    const Slot base = known == bases.end() ? slot : known->second;
    return base <= inputs ? any_input : base;
  };
  absl::flat_hash_set<Slot> reached, storages;  // values that lead to an output, and what a write may change of these
  absl::flat_hash_set<Slot> recorded;           // storages with values that require grad; those of integers do not
  const auto note = [&](Slot slot) {
    if (types.of(slot).requires_grad) recorded.insert(storage(slot));
  };
  for (Slot slot = 1; slot <= inputs; ++slot) note(slot);
  for (const Instruction& instruction : program.instructions()) {
    std::for_each(instruction.results.begin(), instruction.results.end(), note);
  }
  const auto reach = [&](Slot slot) {
    if (recorded.contains(storage(slot))) reached.insert(slot), storages.insert(storage(slot));
  };
  std::for_each(program.outputs().begin(), program.outputs().end(), reach);
  const auto& instructions = program.instructions();
  for (auto at = instructions.rbegin(); at != instructions.rend(); ++at) {
    const bool is_recorded = (at->flags & Instruction::kGrad) != 0 && (at->flags & Instruction::kInference) == 0;
    const bool writes = (at->flags & Instruction::kInto) != 0;
    const auto is_reached = [&](Slot slot) {
      return writes ? storages.contains(storage(slot)) : reached.contains(slot);
    };
    if (!is_recorded || !std::any_of(at->results.begin(), at->results.end(), is_reached)) continue;
    for (size_t i = 0; i < at->args.size(); ++i) {
      if (!at->op->params[i].differentiable) continue;
      for (Slot slot : names_in(at->args[i])) reach(slot);
    }
  }
  std::vector<bool> found;
  for (Slot slot = 1; slot <= inputs; ++slot) found.push_back(reached.contains(slot));
  return found;
}

Arg list_of(const std::vector<const TensorMeta*>& tensors) { return Arg(absl::Span<const TensorMeta* const>(tensors)); }

std::vector<const TensorMeta*> pointers_to(absl::Span<const Tensor> tensors) {
  std::vector<const TensorMeta*> pointers;
  for (const Tensor& tensor : tensors) pointers.push_back(tensor.get());
  return pointers;
}

}  // namespace

Program::Program(Ref<Session> session, tt::Program traced, size_t inputs, std::vector<Tensor> captured,
                 std::vector<size_t> order, std::vector<InputKind> kinds, size_t written, const RunOptions& options,
                 std::vector<Output> outputs, std::vector<LeafGrad> grads, std::vector<ReadGrad> read_grads,
                 std::vector<InputUse> uses, std::vector<v1::Site> sites, std::vector<SizeRequirement> requirements,
                 std::vector<std::pair<Slot, size_t>> ranks)
    : session_(std::move(session)),
      traced_(std::move(traced)),
      inputs_(inputs),
      captured_(std::move(captured)),
      order_(std::move(order)),
      kinds_(std::move(kinds)),
      written_(written),
      options_(options),
      outputs_(std::move(outputs)),
      grads_(std::move(grads)),
      read_grads_(std::move(read_grads)),
      uses_(std::move(uses)),
      sites_(std::move(sites)),
      requirements_(std::move(requirements)),
      ranks_(std::move(ranks)) {}

Program::~Program() {
  if (number_ == 0) return;
  try {
    session_->drop_program(number_);
  } catch (const Error&) {  // the session has ended
  }
}

std::string Program::definition() const {
  v1::Frame frame;
  encode_program(traced_, &frame);
  if (options_.memory_budget < 1 && frame.instructions_size() > 0) {
    v1::Instruction& first = *frame.mutable_instructions(0);
    first.set_recompute(first.recompute() | (1 + static_cast<uint32_t>(options_.memory_budget * 65536)) << 2);
  }
  for (const v1::Site& line : sites_) *frame.mutable_sites()->Add() = line;
  return frame.SerializeAsString();
}

bool Program::can_be_stored() const {
  // Guards on the metadata of the inputs contain neither offsets nor what depends on them.
  const auto reads_offset = [](const std::vector<SizeTerm>& terms) {
    return std::any_of(terms.begin(), terms.end(), [](const SizeTerm& t) { return t.kind == SizeTerm::Kind::kOffset; });
  };
  const bool is_of_offsets = std::any_of(requirements_.begin(), requirements_.end(), [&](const SizeRequirement& each) {
    return reads_offset(each.left) || reads_offset(each.right);
  });
  const bool has_results = std::all_of(outputs_.begin(), outputs_.end(), [](const Output& output) {
    return output.from == Output::From::kResult && !output.is_freed;
  });
  return number_ == 0 && captured_.empty() && order_.size() == inputs_ && grads_.empty() && read_grads_.empty() &&
         uses_.empty() && traced_.sizes().empty() && !is_of_offsets && has_results && options_.memory_budget == 1;
}

Ref<Program> Program::restored(Ref<Session> session, absl::Span<const Tensor> inputs, const Stored& stored, bool grad) {
  v1::Frame frame;
  check(ErrorKind::kValue, frame.ParseFromString(stored.definition), "[restore_program] expected a serialized frame");
  const auto has_budget = [](const v1::Instruction& each) { return each.recompute() > 2; };
  check(ErrorKind::kValue,
        frame.sizes().empty() && std::none_of(frame.instructions().begin(), frame.instructions().end(), has_budget),
        "[restore_program] expected constant sizes, and no memory budget");
  tt::Program traced;
  decode_program_frame(frame, {}, &traced);
  std::vector<bool> is_used(inputs.size());
  std::vector<Tensor> ordered;
  std::vector<InputKind> kinds;
  for (size_t index : stored.order) {
    check(ErrorKind::kValue, index < inputs.size() && !is_used[index], "[restore_program] expected an order of ",
          inputs.size(), " inputs");
    const Tensor& input = inputs[index];
    check(ErrorKind::kValue, input->session.get() == session.get(),
          "[restore_program] expected inputs of the Program's session");
    input->follow_base();
    is_used[index] = true;
    ordered.push_back(input);
    kinds.push_back({input->dtype, input->device});
  }
  check(ErrorKind::kValue, ordered.size() == inputs.size() && stored.written <= inputs.size(),
        "[restore_program] expected an order of ", inputs.size(), " inputs, and at most as many that are written");
  const std::vector<const TensorMeta*> metas = pointers_to(ordered);
  const ProgramTypes types(traced, metas, grad);  // throws if it is invalid
  for (Slot slot : traced.outputs())
    check(ErrorKind::kValue, types.contains(slot), "[restore_program] expected outputs that are defined, got %", slot);
  std::vector<Output> results;
  for (size_t index : stored.outputs) {
    check(ErrorKind::kValue, index < traced.outputs().size(), "[restore_program] expected one of ",
          traced.outputs().size(), " results, got ", index);
    results.push_back({Output::From::kResult, index});
  }
  std::vector<v1::Site> sites(frame.sites().begin(), frame.sites().end());
  Ref<Program> made(new Program(std::move(session), std::move(traced), inputs.size(), {}, stored.order,
                                std::move(kinds), stored.written, {.exact = stored.exact}, std::move(results), {}, {},
                                {}, std::move(sites), {}, {}));
  made->add_signature(ordered, grad, hash_of(ordered, grad), types);
  return made;
}

void Program::define(uint32_t site) {
  if (number_ != 0) return;
  const std::string bytes = definition();
  const int64_t size = static_cast<int64_t>(bytes.size());
  const Tensor definition = session_->upload(bytes, DType::kUInt8, {&size, 1}, Device{}, site);
  number_ = session_->define_program(definition, order_.size() - written_, written_, options_.exact, site);
  sites_.clear();
}

std::vector<Tensor> Program::in_order(absl::Span<const Tensor> inputs) const {
  check(ErrorKind::kType, inputs.size() == inputs_, "[run_program] expected ", inputs_, " inputs, got ", inputs.size());
  for (const Tensor& input : inputs) {
    check(input->session.get() == session_.get(),
          "[run_program] expected tensors of the Program's session, got a tensor of another session");
  }
  for (const Tensor& tensor : captured_) {
    check(!tensor->is_replaced, "[run_program] a tensor that the traced function uses was replaced (`x.data = y`, ",
          "module.to(), x.detach_()); trace the function again");
  }
  std::vector<Tensor> ordered;
  ordered.reserve(order_.size());
  for (size_t index : order_) {
    ordered.push_back(index < inputs_ ? inputs[index] : captured_[index - inputs_]);
    ordered.back()->follow_base();
  }
  return ordered;
}

// The expression with arguments of the function by their numbers.
std::string Program::describe(SizeExpression expression) const {
  return to_string(expression, [this](uint64_t name) {
    const bool is_given = name <= order_.size() && order_[name - 1] < inputs_;
    return is_given ? absl::StrCat("input ", order_[name - 1]) : absl::StrCat("%", name);
  });
}

void Program::check_requirement(const SizeRequirement& requirement, const ProgramTypes& types) const {
  using Relation = SizeRequirement::Relation;
  const auto [left, right, holds] = evaluate_requirement(requirement, types);
  if (holds) return;
  const Relation relation = requirement.relation;
  const char* const symbol = relation == Relation::kEqual  ? (requirement.expected ? " == " : " != ")
                             : relation == Relation::kLess ? (requirement.expected ? " < " : " >= ")
                                                           : (requirement.expected ? " <= " : " > ");
  fail(ErrorKind::kValue, "[run_program] the traced function requires ", describe(requirement.left), symbol,
       describe(requirement.right), requirement.where.empty() ? "" : absl::StrCat(" (", requirement.where, ")"),
       ", got ", left, " and ", right, "; trace it again with such inputs");
}

ProgramTypes Program::infer_types(absl::Span<const TensorMeta* const> inputs, bool grad) const {
  absl::Span<const SizeRequirement> left = requirements_;
  const auto visit = [&](size_t instruction, const ProgramTypes& types) {
    for (; !left.empty() && left[0].instruction <= instruction; left.remove_prefix(1))
      check_requirement(left[0], types);
  };
  ProgramTypes types = with_sizes(traced_, inputs, grad, visit).types;
  for (const auto& [name, rank] : ranks_) {
    const size_t dims = types.of(name).sizes.size();
    check(ErrorKind::kValue, dims == rank, "[run_program] expected ", rank, " dimensions of %", name,
          " of the Program, as traced, got ", dims, "; trace the function again with such inputs");
  }
  return types;
}

void Program::check_kinds(absl::Span<const Tensor> ordered) const {
  for (size_t i = 0; i < ordered.size(); ++i) {
    const auto& [dtype, device] = kinds_[i];
    const Handle& input = *ordered[i];
    if (input.dtype == dtype && input.device == device) continue;
    fail(ErrorKind::kValue, "[run_program] expected an input of ", name(dtype), " on ", to_string(device),
         ", as traced, got ", name(input.dtype), " on ", to_string(input.device), "; trace the function again");
  }
}

std::vector<TensorMeta> Program::infer(absl::Span<const Tensor> inputs) const {
  const std::vector<Tensor> ordered = in_order(inputs);
  check_kinds(ordered);
  const std::vector<const TensorMeta*> metas = pointers_to(ordered);
  const ProgramTypes types = infer_types(metas, /*grad=*/false);
  std::vector<TensorMeta> results;
  for (Slot slot : traced_.outputs()) results.push_back(types.of(slot));
  return results;
}

bool Program::Signature::is_of(absl::Span<const Tensor> ordered, bool with_grad) const {
  return grad == with_grad && std::equal(inputs.begin(), inputs.end(), ordered.begin(), ordered.end(),
                                         [](const TensorMeta& a, const Tensor& b) { return equal(a, *b); });
}

const Program::Signature& Program::infer_results(absl::Span<const Tensor> ordered, bool grad) {
  if (!signatures_.empty() && signatures_.front().is_of(ordered, grad)) return signatures_.front();
  const uint64_t hash = hash_of(ordered, grad);
  const auto known = by_hash_.find(hash);
  if (known != by_hash_.end()) {
    signatures_.splice(signatures_.begin(), signatures_, known->second);
    if (signatures_.front().is_of(ordered, grad)) return signatures_.front();
  }
  check_kinds(ordered);
  const std::vector<const TensorMeta*> metas = pointers_to(ordered);
  return add_signature(ordered, grad, hash, infer_types(metas, grad));
}

const Program::Signature& Program::add_signature(absl::Span<const Tensor> ordered, bool grad, uint64_t hash,
                                                 const ProgramTypes& types) {
  Signature made{.inputs = {}, .grad = grad, .results = {}, .has_gradient = {}, .hash = hash};
  for (const Tensor& tensor : ordered) made.inputs.push_back(*tensor);
  for (Slot slot : traced_.outputs()) made.results.push_back(types.of(slot));
  if (grad) made.has_gradient = inputs_with_gradients(traced_, types, order_.size());
  if (by_hash_.contains(hash)) {  // other metadata with the same hash, which is the first signature
    signatures_.front() = std::move(made);
    return signatures_.front();
  }
  const size_t metas_of_each = ordered.size() + traced_.outputs().size();
  while (signatures_.size() >= kMaxSignatures ||
         (signatures_.size() >= kFewSignatures && signatures_.size() * metas_of_each >= kMaxMetas)) {
    by_hash_.erase(signatures_.back().hash);
    signatures_.pop_back();
  }
  signatures_.push_front(std::move(made));
  by_hash_[hash] = signatures_.begin();
  return signatures_.front();
}

// The backward passes of a Program compute what the traced function would compute only if the same inputs require grad.
void Program::check_differentiated(absl::Span<const Tensor> ordered, bool grad) const {
  if (uses_.empty()) [[likely]]
    return;
  check(grad,
        "element 0 of tensors does not require grad and does not have a grad_fn: the Program computes gradients, "
        "which requires that gradients are enabled");
  absl::flat_hash_set<const Handle*> differentiated;
  for (size_t i = 0; i < ordered.size(); ++i) {
    const Handle& input = *ordered[i];
    check(input.requires_grad == uses_[i].requires_grad,
          "[run_program] expected an input with requires_grad=", uses_[i].requires_grad ? "True" : "False",
          ", as traced, because the Program computes gradients");
    if (!uses_[i].is_differentiated) continue;
    check(ErrorKind::kValue, differentiated.insert(&input).second,
          "[run_program] expected different tensors as inputs that the Program differentiates, got one of them twice");
    check(hooks_of(input) == uses_[i].hooks,
          "[run_program] the hooks of a tensor that the Program differentiates are others than when the function was "
          "traced, and the Program contains what they called then; trace the function again");
  }
}

void Program::check_grads(absl::Span<const Tensor> inputs) const {
  for (const ReadGrad& read : read_grads_) {
    check(
        tensor_of(read.leaf, inputs, {})->grad == read.value,
        "[run_program] the traced function reads .grad of a tensor, which is another one than at the trace; set it to "
        "None in the function before reading it, or trace the function again");
  }
  for (const LeafGrad& grad : grads_) {
    const Tensor leaf = tensor_of(grad.leaf, inputs, {});
    check(leaf->is_leaf(),
          "[run_program] expected a leaf as the input whose .grad the Program changes, got a result of "
          "a recorded operation");
    check(!leaf->grad || (!grad.begins_without && (grad.is_set || !grad.is_read)),
          "[run_program] the traced function reads .grad of a leaf that had none; set it to None before the call, or "
          "clear it in the function");
  }
}

Tensor Program::tensor_of(const Output& output, absl::Span<const Tensor> inputs,
                          absl::Span<const Tensor> results) const {
  switch (output.from) {
    case Output::From::kResult: return results[output.index];
    case Output::From::kInput: return inputs[output.index];
    case Output::From::kCaptured: return captured_[output.index];
    case Output::From::kNone: break;
  }
  return Tensor();
}

void Program::store_grads(absl::Span<const Tensor> inputs, absl::Span<const Tensor> results, uint32_t site) const {
  struct Grads {
    std::vector<Tensor> leaves, grads;
    void add(const Tensor& leaf, Tensor grad) {
      leaves.push_back(leaf);
      grads.push_back(std::move(grad));
    }
  };
  Grads set, replaced, accumulated;
  for (const LeafGrad& grad : grads_) {
    const Tensor leaf = tensor_of(grad.leaf, inputs, results);
    if (grad.accumulated.from == Output::From::kNone) {
      set.add(leaf, tensor_of(grad.set, inputs, results));
    } else {
      Grads& grads = grad.is_set || !leaf->grad ? replaced : accumulated;
      grads.add(leaf, tensor_of(grad.accumulated, inputs, results));
    }
  }
  set_grads(set.leaves, set.grads, site);
  accumulate_grads(replaced.leaves, replaced.grads, /*replace=*/true, site);
  accumulate_grads(accumulated.leaves, accumulated.grads, /*replace=*/false, site);
}

bool Program::differentiates_own_values() const {
  return !uses_.empty() && grads_.empty() &&
         std::none_of(uses_.begin(), uses_.end(), [](const InputUse& use) { return use.is_differentiated; });
}

// The function has enabled gradients where it computes some; what it computes elsewhere has no history.
std::vector<Tensor> Program::run_without_history(absl::Span<const Tensor> inputs, const CallOptions& options) {
  static const Op& op = *find_op(op_id::kDetach);
  CallOptions recorded = options;
  recorded.grad = true;
  recorded.inference = false;
  std::vector<Tensor> outputs = run(inputs, recorded);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs_[i].from != Output::From::kResult || (!outputs[i]->requires_grad && !options.inference)) continue;
    const Arg args[] = {Arg(outputs[i].get())};
    CallOptions plain = options;
    plain.grad = false;
    outputs[i] = session_->call(op, args, plain)[0];
  }
  return outputs;
}

std::vector<Tensor> Program::run(absl::Span<const Tensor> inputs, const CallOptions& options) {
  if ((!options.grad || options.inference) && differentiates_own_values()) [[unlikely]]
    return run_without_history(inputs, options);
  static const Op& op = *find_op(op_id::kRunProgram);
  check(ErrorKind::kNotImplemented, !options.autocast.enabled(),
        "[run_program] autocast has no effect on a Program, whose casts are part of it; run it outside autocast");
  check(ErrorKind::kNotImplemented, options.saved == nullptr || (*options.saved)->recomputation() != nullptr,
        "[run_program] hooks of saved tensors are not called for the tensors that a Program saves");
  check(!ProgramTrace::of(*session_), "[run_program] a Program cannot be run while another one is traced");
  const std::vector<Tensor> ordered = in_order(inputs);
  const bool grad = options.grad && !options.inference;
  check_differentiated(ordered, grad);
  check_grads(inputs);
  const Signature& signature = infer_results(ordered, grad);
  for (size_t i = ordered.size() - written_; grad && uses_.empty() && i < ordered.size(); ++i) {
    check(ErrorKind::kNotImplemented, !signature.has_gradient[i] || !ordered[i]->requires_grad,
          "[run_program] a Program gives no gradient to an input that it writes, got one that requires grad");
  }
  Tensors results;
  if (!traced_.instructions().empty()) {
    define(options.site);
    const std::vector<const TensorMeta*> all = pointers_to(ordered);
    const absl::Span<const TensorMeta* const> pointers(all);
    const size_t read = all.size() - written_;
    const Arg args[] = {Arg(pointers.first(read)), Arg(pointers.subspan(read)), Arg(number_)};
    std::vector<const TensorMeta*> differentiable;
    for (size_t i = 0; i < read; ++i) {
      if (grad && signature.has_gradient[i]) differentiable.push_back(all[i]);
    }
    const Arg recorded[] = {list_of(differentiable), args[1], args[2]};
    results = session_->call_recorded(op, args, recorded, signature.results, options);
  }
  std::vector<Tensor> outputs;
  for (const Output& output : outputs_) {
    outputs.push_back(tensor_of(output, inputs, results));
    if (!output.is_freed) continue;
    Ref<GraphNode> node(new GraphNode(&op, nullptr));
    node->freed = GraphNode::Freed::kYes;
    set_grad_node(*outputs.back(), std::move(node), 0);
  }
  if (!grads_.empty()) store_grads(inputs, results, options.site);
  return outputs;
}

// Calls an operator that returns text about the Program.
std::string Program::describe(uint16_t op, absl::Span<const Tensor> inputs, uint32_t site) {
  const std::vector<Tensor> ordered = in_order(inputs);
  infer_results(ordered, /*grad=*/true);  // throws what a run would throw
  define(site);
  const std::vector<const TensorMeta*> all = pointers_to(ordered);
  const absl::Span<const TensorMeta* const> pointers(all);
  const size_t read = all.size() - written_;
  const Arg args[] = {Arg(pointers.first(read)), Arg(pointers.subspan(read)), Arg(number_)};
  const Tensors text = session_->call(*find_op(op), args, {.site = site});
  return session_->read(text[0], site).bytes;
}

std::string Program::explain(absl::Span<const Tensor> inputs, uint32_t site) {
  const std::string passes = describe(op_id::kExplainProgram, inputs, site);
  return "# as traced\n" + text() + passes;
}

std::string Program::expanded(absl::Span<const Tensor> inputs, uint32_t site) {
  return describe(op_id::kExpandProgram, inputs, site);
}

namespace {

// The rows that an operator without arguments returns.
std::vector<std::vector<int64_t>> rows_of(Session& session, const Op& op, uint32_t site) {
  const Tensors counters = session.call(op, {}, {.grad = false, .site = site});
  const Value value = session.read(counters[0], site);
  const Sizes& sizes = value.meta.sizes;
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(sizes[0]),
                                         std::vector<int64_t>(static_cast<size_t>(sizes[1])));
  size_t at = 0;
  for (std::vector<int64_t>& row : rows) {
    std::memcpy(row.data(), value.bytes.data() + at, row.size() * sizeof(int64_t));
    at += row.size() * sizeof(int64_t);
  }
  return rows;
}

}  // namespace

std::vector<std::vector<int64_t>> program_counters(Session& session, uint32_t site) {
  return rows_of(session, *find_op(op_id::kProgramCounters), site);
}

std::vector<std::vector<int64_t>> window_counters(Session& session, uint32_t site) {
  return rows_of(session, *find_op(op_id::kWindowCounters), site);
}

}  // namespace tt::client
