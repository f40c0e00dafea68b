#include "engine/session/programs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/device/cancellation.h"
#include "engine/dispatch/chain.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/dispatch/new_results.h"
#include "engine/program/passes/between_writes.h"
#include "engine/program/passes/expand.h"
#include "engine/program/passes/functionalise.h"
#include "engine/program/passes/fuse_convolutions.h"
#include "engine/program/passes/fuse_linear.h"
#include "engine/program/passes/fuse_pointwise.h"
#include "engine/program/passes/fuse_regions.h"
#include "engine/program/passes/fusion_limits.h"
#include "engine/program/passes/inline_bodies.h"
#include "engine/program/passes/keep_channels_last.h"
#include "engine/program/passes/leading_values.h"
#include "engine/program/passes/merge_equal.h"
#include "engine/program/passes/peak_memory.h"
#include "engine/program/passes/recompute.h"
#include "engine/program/passes/remove_identities.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/program/passes/rewrite.h"
#include "engine/program/passes/writes.h"
#include "engine/program/readable_text.h"
#include "engine/schema/json_text.h"
#include "engine/schema/op_ids.h"
#include "engine/schema/program_types.h"
#include "engine/schema/sized_program.h"
#include "engine/session/context.h"

namespace tt {
namespace {

constexpr size_t kMaxExplanation = size_t{4} << 20;  // bytes

void add_number(int64_t value, std::string* signature) {
  signature->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Appends what the passes depend on.
void add_signature(const Tensor& tensor, std::string* signature) {
  const auto add = [&](int64_t value) { add_number(value, signature); };
  const bool is_contiguous = tensor.is_contiguous();
  signature->append(
      {static_cast<char>(tensor.dtype()), static_cast<char>(tensor.requires_grad()), static_cast<char>(is_contiguous)});
  add(tensor.device().encode());
  add(tensor.dim());
  for (int64_t size : tensor.sizes()) add(size);
  if (is_contiguous) return;
  for (int64_t stride : tensor.strides()) add(stride);
}

// Appends which inputs share memory: to each, the first one with the same storage.
void add_sharing(const ProgramInputs& inputs, std::string* signature) {
  absl::flat_hash_map<const Storage*, int64_t> first;
  int64_t index = 0;
  for (const absl::Span<const Tensor> tensors : {inputs.read, inputs.written}) {
    for (const Tensor& tensor : tensors)
      add_number(first.emplace(tensor->storage.get(), index++).first->second, signature);
  }
}

bool reads_storage_offsets(const Program& program) {
  return std::any_of(program.instructions().begin(), program.instructions().end(),
                     [](const Instruction& instruction) { return instruction.op->id == op_id::kAsStrided; });
}

std::vector<const TensorMeta*> metas_of(const ProgramInputs& inputs) {
  std::vector<const TensorMeta*> metas;
  for (const Tensor& tensor : inputs.read) metas.push_back(tensor.get());
  for (const Tensor& tensor : inputs.written) metas.push_back(tensor.get());
  for (const Tensor& tensor : inputs.constants) metas.push_back(tensor.get());
  return metas;
}

bool is_recorded(const Program& program, const ProgramTypes& types) {
  return std::any_of(program.instructions().begin(), program.instructions().end(), [&](const Instruction& one) {
    return std::any_of(one.results.begin(), one.results.end(), [&](Slot slot) { return types.of(slot).requires_grad; });
  });
}

// The number of backward passes that may differentiate calls of the Program: its own, and those from its outputs.
int64_t count_backward(const Program& program, const ProgramTypes& types) {
  const auto is_pass = [](const Instruction& instruction) { return instruction.op->id == op_id::kBackward; };
  const auto requires_grad = [&](Slot slot) { return types.of(slot).requires_grad; };
  return std::count_if(program.instructions().begin(), program.instructions().end(), is_pass) +
         std::count_if(program.outputs().begin(), program.outputs().end(), requires_grad);
}

// Whether a backward pass begins with gradients that the Program has computed: it may return them as they are.
bool is_given_gradients(const Instruction& instruction) {
  constexpr size_t kGradients = 1;
  if (instruction.op->id != op_id::kBackward || instruction.args.size() <= kGradients) return false;
  const absl::Span<const Slot> names = names_in(instruction.args[kGradients]);
  return std::any_of(names.begin(), names.end(), [](Slot slot) { return slot != 0; });
}

// The number of instructions up to the last backward pass.
size_t end_of_backward(const Program& program) {
  const auto& instructions = program.instructions();
  const auto last = std::find_if(instructions.rbegin(), instructions.rend(),
                                 [](const Instruction& instruction) { return instruction.op->id == op_id::kBackward; });
  return static_cast<size_t>(instructions.rend() - last);
}

std::string describe(const Constants& constants) {
  if (constants.too_large) {
    return absl::StrCat("fold_constants, which has not kept values of more than ", Constants::kMaxBytes, " bytes");
  }
  return absl::StrCat("fold_constants, which has computed ", constants.values.size(), " values of ", constants.bytes,
                      " bytes once");
}

// One line per constant, whose names follow those of the inputs.
std::string text_of_constants(absl::Span<const TensorMeta* const> constants, size_t inputs) {
  std::string text;
  for (size_t i = 0; i < constants.size(); ++i)
    absl::StrAppend(&text, "%", inputs + 1 + i, " = constant ", describe(*constants[i]), "\n");
  return text;
}

// Why there are no loops that fuse_regions makes: `takes_more` memory, or the tape records calls.
std::string reason_against_loops(bool takes_more, bool records) {
  if (records) return "the tape records calls, so that only neighbours are one loop";
  return takes_more ? "the loops would keep operands longer, and take more memory than single calls" : "";
}

void fuse(const ProgramInputs& inputs, Program* program) {
  SlotTable slots;
  put_inputs(inputs, &slots);
  fuse_pointwise(program, slots);
}

}  // namespace

DefinedProgram::DefinedProgram(Program program, const ProgramInterface& interface, std::vector<std::string> sites,
                               std::string text, size_t max_variants, double memory_budget)
    : program_(std::move(program)),
      writes_(writes_in_place(program_)),
      reads_storage_offsets_(reads_storage_offsets(program_)),
      instructions_(static_cast<int64_t>(program_.instructions().size())),
      interface_(interface),
      sites_(std::move(sites)),
      text_(std::move(text)),
      max_variants_(max_variants),
      memory_budget_(memory_budget) {
  check_program(program_, interface_.read + interface_.written);
  if (program_.sizes().empty()) remove_unused(&program_);
  uint64_t bytes = program_.bytes() + text_.capacity();
  for (const std::string& site : sites_) bytes += sizeof(site) + site.capacity();
  bytes_ = bytes;
}

void DefinedProgram::check_inputs(const ProgramInputs& inputs) const {
  check(ErrorKind::kValue, inputs.read.size() == interface_.read && inputs.written.size() == interface_.written,
        "expected ", interface_.read, " inputs and ", interface_.written, " that the Program may change, got ",
        inputs.read.size(), " and ", inputs.written.size());
  const auto is_defined = [](const Tensor& tensor) { return static_cast<bool>(tensor); };
  check(ErrorKind::kValue,
        std::all_of(inputs.read.begin(), inputs.read.end(), is_defined) &&
            std::all_of(inputs.written.begin(), inputs.written.end(), is_defined),
        "expected defined tensors as inputs of a Program");
}

Tensors DefinedProgram::run(const ProgramInputs& inputs) const {
  check_inputs(inputs);
  const std::shared_ptr<const Compiled> compiled = variant_for(inputs);
  const std::vector<Tensor> constants = for_session(compiled->constants);
  return run_program(compiled->program, {inputs.read, inputs.written, constants},
                     [this](uint32_t site) { return describe_site(site); });
}

DefinedProgram::Compiled DefinedProgram::specialised(const ProgramInputs& inputs, Visit visit_with_metas,
                                                     std::string* reason) const {
  std::vector<const TensorMeta*> metas = metas_of(inputs);
  const auto visit = [&](const char* pass, const Program& program) {
    check_cancelled();
    visit_with_metas(pass, program, metas);
  };
  const bool grad = CallScope::current().grad_enabled;
  Program program;
  if (program_.sizes().empty()) {
    program = program_;
  } else {
    program = with_sizes(program_, metas, grad).program;
    remove_unused(&program);
    visit("the computation of sizes and remove_unused", program);
  }
  if (has_bodies(program)) {
    inline_bodies(&program);
    visit("inline_bodies", program);
  }
  const auto change = [&](PartPass pass) { program = map_between_writes(program, metas, grad, pass); };
  if (writes_in_place(program)) {
    functionalise(&program, ProgramTypes(program, metas, grad), metas.size());
    remove_unused(&program);
    visit("functionalise and remove_unused", program);
  }
  const bool is_differentiated_once = count_backward(program, ProgramTypes(program, metas, grad)) <= 1;
  change([&](Program part, absl::Span<const TensorMeta* const> of) {
    merge_equal(&part, ProgramTypes(part, of, grad), is_differentiated_once);
    remove_unused(&part);
    return part;
  });
  visit("merge_equal and remove_unused", program);
  if (!interface_.exact) {
    change([&](Program part, absl::Span<const TensorMeta* const> of) {
      rewrite(&part, ProgramTypes(part, of, grad));
      return part;
    });
    visit("rewrite", program);
  }
  // The tape checks gradients for NaN if the session asks for it.
  if (has_backward(program) && !CallScope::current().detect_anomaly)
    expand_backward(inputs, &program, visit_with_metas, reason);
  if (reason->empty()) remove_marks(&program);
  const Constants constants = fold_constants(&program, metas, grad);
  for (const Tensor& value : constants.values) metas.push_back(value.get());
  if (!constants.values.empty() || constants.too_large) visit(describe(constants).c_str(), program);
  const bool writes = writes_in_place(program);
  // The tape depends on the order of the calls that it records.
  const bool records = is_recorded(program, ProgramTypes(program, metas, grad));
  if (writes || !records) {
    const auto may_change = [&](const Program& part, absl::Span<const TensorMeta* const> of) {
      return !has_backward(part) && !is_recorded(part, ProgramTypes(part, of, grad));
    };
    if (has_convolution(program)) {
      change([&](Program part, absl::Span<const TensorMeta* const> of) {
        if (!may_change(part, of)) return part;
        const ProgramTypes types(part, of, grad);
        fuse_convolutions(&part, types);
        return keep_channels_last(part, types, of, interface_.exact);
      });
      visit("fuse_convolutions and keep_channels_last", program);
    }
    if (!interface_.exact && has_linear(program)) {
      change([&](Program part, absl::Span<const TensorMeta* const> of) {
        if (may_change(part, of)) fuse_linear(&part, ProgramTypes(part, of, grad));
        return part;
      });
      visit("fuse_linear", program);
    }
    change([&](Program part, absl::Span<const TensorMeta* const> of) {
      if (!may_change(part, of)) return part;
      remove_identities(&part, ProgramTypes(part, of, grad));
      remove_unused(&part);
      return part;
    });
    const Program single = program;
    change([&](Program part, absl::Span<const TensorMeta* const> of) {
      if (!may_change(part, of)) return part;
      fuse_regions(&part, ProgramTypes(part, of, grad));
      remove_unused(&part);
      return part;
    });
    // A loop keeps the operands of its first call until its place.
    const bool takes_more = peak_bytes(program, metas, grad) > peak_bytes(single, metas, grad);
    if (takes_more) program = single;
    if (takes_more || records) *reason = reason_against_loops(takes_more, records);
    visit(takes_more ? "remove_identities; not fuse_regions, which would take more memory"
                     : "remove_identities, fuse_regions and remove_unused",
          program);
  }
  remove_marks(&program);
  if (writes || records) {
    if (!writes) *reason = reason_against_loops(/*takes_more=*/false, records);
    fuse({inputs.read, inputs.written, constants.values}, &program);
    visit("fuse_pointwise", program);
  }
  return {std::move(program), constants};
}

// Without the calls of forward and backward, the passes see a backward pass as one call.
void DefinedProgram::expand_backward(const ProgramInputs& inputs, Program* program, Visit visit_with_metas,
                                     std::string* kept_apart) const {
  const std::vector<const TensorMeta*> metas = metas_of(inputs);
  const auto visit = [&](const char* pass, const Program& changed) {
    check_cancelled();
    visit_with_metas(pass, changed, metas);
  };
  const LeadingValues differentiated(*program, inputs.read.size() + inputs.written.size(), end_of_backward(*program));
  const auto& instructions = program->instructions();
  if (writes_in_place(*program) && std::any_of(instructions.begin(), instructions.end(), is_given_gradients)) {
    return visit("expand, which has failed: a write may change gradients that a backward pass was given", *program);
  }
  std::string reason;
  Recomputed recomputed;
  std::optional<Program> expanded = expand(differentiated.program(), inputs, memory_budget_, &recomputed, &reason);
  if (!expanded) return visit(absl::StrCat("expand, which has failed: ", reason).c_str(), *program);
  merge_equal(&*expanded, ProgramTypes(*expanded, metas, CallScope::current().grad_enabled),
              /*recorded=*/false);
  if (recomputed.calls > 0) mark_forward(&*expanded);
  remove_unused(&*expanded);
  std::optional<Program> whole = differentiated.joined(*std::move(expanded));
  if (!whole) return visit("expand, which has failed: too many names", *program);
  *program = *std::move(whole);
  if (recomputed.calls > 0)
    *kept_apart = "memory: calls of forward, and those that are repeated for backward, are different loops";
  std::string passes = "expand, merge_equal and remove_unused";
  if (recomputed.calls > 0 || recomputed.all_bytes > 0)
    absl::StrAppend(&passes, "; recompute has added ", recomputed.calls, " calls");
  if (recomputed.all_bytes > 0) {
    absl::StrAppend(&passes, ", backward keeps ", recomputed.kept_bytes, " of ", recomputed.all_bytes,
                    " bytes, with a budget of ", memory_budget_);
  }
  visit(passes.c_str(), *program);
}

std::string DefinedProgram::signature_of(const ProgramInputs& inputs) const {
  const CallScope& scope = CallScope::current();
  std::string signature = {scope.grad_enabled ? 'g' : 'n', scope.detect_anomaly ? 'a' : '-'};
  for (const absl::Span<const Tensor> tensors : {inputs.read, inputs.written}) {
    for (const Tensor& tensor : tensors) {
      add_signature(tensor, &signature);
      if (reads_storage_offsets_) add_number(tensor->offset, &signature);
    }
  }
  if (writes_) add_sharing(inputs, &signature);
  return signature;
}

std::shared_ptr<const DefinedProgram::Compiled> DefinedProgram::variant_for(const ProgramInputs& inputs) const {
  std::string signature = signature_of(inputs);
  {
    MutexLock lock(mutex_);
    if (!variants_.empty() && variants_.front().signature == signature) return variants_.front().compiled;
    const auto found = by_signature_.find(signature);
    if (found != by_signature_.end()) {
      variants_.splice(variants_.begin(), variants_, found->second);
      return variants_.front().compiled;
    }
  }
  const absl::Time start = absl::Now();
  std::string reason;
  auto made = std::make_shared<Compiled>(specialised(
      inputs, [](const char*, const Program&, Metas) {}, &reason));
  const ProgramInputs all{inputs.read, inputs.written, made->constants.values};
  const int64_t peak = peak_bytes(made->program, metas_of(all), CallScope::current().grad_enabled);
  MutexLock lock(mutex_);
  compiling_ += absl::Now() - start;
  if (by_signature_.contains(signature)) return made;  // another session has made it meanwhile
  variants_.push_front({std::move(signature), made, peak});
  by_signature_.emplace(variants_.front().signature, variants_.begin());
  variant_bytes_ += variants_.front().bytes();
  bytes_ += variants_.front().bytes();
  remove_variants();
  return made;
}

// Removes those that were not used for the longest time.
void DefinedProgram::remove_variants() const {
  while (variants_.size() > max_variants_ || (variants_.size() > kFewVariants && variant_bytes_ > kMaxVariantBytes)) {
    const uint64_t bytes = variants_.back().bytes();
    by_signature_.erase(variants_.back().signature);
    variants_.pop_back();
    variant_bytes_ -= bytes;
    bytes_ -= bytes;
  }
}

ProgramCounters DefinedProgram::counters() const {
  MutexLock lock(mutex_);
  ProgramCounters counters;
  counters.instructions = instructions_;
  counters.compiled_instructions =
      static_cast<int64_t>((variants_.empty() ? program_ : variants_.front().compiled->program).instructions().size());
  counters.peak_bytes = variants_.empty() ? 0 : variants_.front().peak_bytes;
  counters.signatures = static_cast<int64_t>(variants_.size());
  counters.microseconds = absl::ToInt64Microseconds(compiling_);
  return counters;
}

std::string DefinedProgram::explain(const ProgramInputs& inputs) const {
  check_inputs(inputs);
  const size_t count = inputs.read.size() + inputs.written.size();
  std::string text;
  const auto add = [&](const char* pass, const Program& program, Metas metas) {
    const int64_t peak = peak_bytes(program, metas, CallScope::current().grad_enabled);
    absl::StrAppend(&text, "# after ", pass, "; values of at most ", peak, " bytes",
                    has_backward(program) ? " without what the tape saves" : "", "\n",
                    text_of_constants(metas.subspan(count), count), readable_text(program));
    check(text.size() <= kMaxExplanation, "[explain_program] the text of a Program with ",
          program.instructions().size(), " instructions exceeds ", kMaxExplanation, " bytes");
  };
  std::string reason;
  const Compiled made = specialised(inputs, add, &reason);
  const ProgramInputs all{inputs.read, inputs.written, made.constants.values};
  const std::string apart = explain_fusion(made.program, metas_of(all), CallScope::current().grad_enabled, reason);
  if (!apart.empty()) absl::StrAppend(&text, "# not fused\n", apart);
  check(text.size() <= kMaxExplanation, "[explain_program] the text of a Program with ",
        made.program.instructions().size(), " instructions exceeds ", kMaxExplanation, " bytes");
  return text;
}

std::string DefinedProgram::expanded(const ProgramInputs& inputs) const {
  check_inputs(inputs);
  std::string reason;
  Program program = program_;
  remove_marks(&program);
  Recomputed recomputed;
  const std::optional<Program> calls = expand(program, inputs, /*memory_budget=*/1, &recomputed, &reason);
  check(ErrorKind::kNotImplemented, calls.has_value(), "[expand_program] ", reason);
  std::string text = to_json(*calls);
  check(text.size() <= kMaxExplanation, "[expand_program] the text of a Program with ", calls->instructions().size(),
        " instructions exceeds ", kMaxExplanation, " bytes");
  return text;
}

std::string DefinedProgram::describe_site(uint32_t site) const {
  return site == 0 || site > sites_.size() ? "" : sites_[site - 1];
}

Programs::Named& Programs::add(int64_t number) {
  check(ErrorKind::kValue, programs_.size() < kMaxPrograms, "a session has at most ", kMaxPrograms, " Programs");
  const auto [at, is_new] = programs_.try_emplace(number);
  check(ErrorKind::kValue, is_new, "the number ", number, " of a Program is in use");
  return at->second;
}

void Programs::count(Named* named) {
  const uint64_t bytes = kEntryBytes + (named->program ? named->program->bytes() : named->error->message().size());
  bytes_ += bytes - named->bytes;
  named->bytes = bytes;
}

void Programs::count_run(int64_t number) {
  ++runs_;
  const auto found = programs_.find(number);
  if (found == programs_.end()) return;
  ++found->second.runs;
  count(&found->second);
}

std::vector<ProgramCounters> Programs::counters() const {
  std::vector<ProgramCounters> all;
  for (const auto& [number, named] : programs_) {
    if (!named.program) continue;
    all.push_back(named.program->counters());
    all.back().number = number;
    all.back().runs = named.runs;
  }
  return all;
}

void Programs::define(int64_t number, Entry program) {
  Named& named = add(number);
  named.program = std::move(program);
  count(&named);
}

void Programs::fail(int64_t number, const Error& error) {
  Named& named = add(number);
  named.error = error;
  count(&named);
}

void Programs::drop(int64_t number) {
  const auto found = programs_.find(number);
  check(ErrorKind::kValue, found != programs_.end(), "no Program has the number ", number);
  bytes_ -= found->second.bytes;
  programs_.erase(found);
}

Programs::Entry Programs::get(int64_t number) const {
  const auto found = programs_.find(number);
  check(ErrorKind::kValue, found != programs_.end(), "no Program has the number ", number);
  if (!found->second.program) throw Error(*found->second.error);
  return found->second.program;
}

void Programs::visit(absl::FunctionRef<void(int64_t, const DefinedProgram&)> visit) const {
  for (const auto& [number, named] : programs_) {
    if (named.program) visit(number, *named.program);
  }
}

void Programs::skipped(const Op& op, Args args, const Error& error, uint32_t /*site*/) {
  if (op.id != op_id::kDefineProgram || args.size() < 2 || args[1].kind != Arg::Kind::kInt) return;
  if (programs_.size() < kMaxPrograms && !programs_.contains(args[1].integer)) fail(args[1].integer, error);
}

void register_program_operators(Dispatcher& dispatcher) {
  for (Key key : {Key::kCPU, Key::kCUDA}) {
    dispatcher.set(op_id::kDropProgram, key,
                   [](Call& call) { Context::current().services.get<Programs>().drop(call.args[0].integer); });
  }
}

}  // namespace tt
