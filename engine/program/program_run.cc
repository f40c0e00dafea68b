#include "engine/program/program_run.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/device/cancellation.h"
#include "engine/dispatch/call_recorder.h"
#include "engine/dispatch/call_scope.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/dispatch/written_tensors.h"
#include "engine/program/resolved_args.h"
#include "engine/schema/default_float.h"
#include "engine/schema/op_ids.h"
#include "engine/schema/read_only.h"

namespace tt {
namespace {

// The names that exist between two instructions.
class Names {
 public:
  explicit Names(size_t inputs) : inputs_(inputs), states_(inputs + 1, State::kExists) { states_[0] = State::kUnused; }

  // Whether an instruction has defined the name, instead of an input.
  bool is_result(Slot slot) const { return slot > inputs_ && exists(slot); }
  bool was_defined(Slot slot) const { return slot < states_.size() && states_[slot] != State::kUnused; }
  bool exists(Slot slot) const { return slot < states_.size() && states_[slot] == State::kExists; }
  void require(Slot slot) const { check(ErrorKind::kValue, exists(slot), "expected a name that exists, got ", slot); }
  void define(Slot slot) {
    check(ErrorKind::kValue, slot != 0 && slot <= Program::kMaxNames, "expected a name of 1 to ", Program::kMaxNames,
          ", got ", slot);
    if (slot >= states_.size()) states_.resize(slot + 1);
    check(ErrorKind::kValue, states_[slot] == State::kUnused, "the name ", slot, " was used before");
    states_[slot] = State::kExists;
  }
  void drop(Slot slot) {
    require(slot);
    states_[slot] = State::kDropped;
  }

 private:
  enum class State : uint8_t { kUnused, kExists, kDropped };
  const Slot inputs_;
  std::vector<State> states_;
};

void check_operator(const Op& op) {
  const bool has_known_sizes = !op.is_dynamic || op.id == op_id::kBackward;
  check(ErrorKind::kNotImplemented, has_known_sizes, "[", op.name,
        "] its results' sizes depend on values, or it belongs to a pass; a Program cannot contain it");
  check(ErrorKind::kNotImplemented, !Dispatcher::instance().suspends(op.id), "[", op.name,
        "] waits for something outside the engine; a Program cannot contain it");
  check(ErrorKind::kNotImplemented, op.session != SessionUse::kState, "[", op.name,
        "] changes the session's state, or uses what is outside of it; a Program cannot contain it");
}

// A backward pass of a Program returns gradients: it does not change leaves.
void check_backward(const Instruction& instruction) {
  constexpr size_t kAccumulate = 3;
  check(ErrorKind::kNotImplemented, instruction.args.size() <= kAccumulate || !instruction.args[kAccumulate].to_bool(),
        "[backward] a Program cannot contain a pass that accumulates into leaves");
}

// Tensors of the caller keep what they require.
void check_requires_grad(const Instruction& instruction, const Names& names) {
  check(ErrorKind::kNotImplemented, !instruction.args.empty() && names.is_result(instruction.args[0].slot),
        "[requires_grad] a Program cannot contain it for an input");
}

void check_instruction(const Instruction& instruction, Names* names) {
  const Op& op = *instruction.op;
  check_operator(op);
  for (Slot slot : instruction.release) names->drop(slot);
  check(ErrorKind::kType, instruction.args.size() <= op.params.size(), "[", op.name, "] takes ", op.params.size(),
        " arguments, got ", instruction.args.size());
  for (size_t i = 0; i < instruction.args.size(); ++i) {
    const Arg& arg = instruction.args[i];
    check(ErrorKind::kType, op.params[i].accepts_in_program(arg), "[", op.name,
          "] expected another kind of argument for ", op.params[i].name);
    for (Slot slot : names_in(arg)) {
      if (slot != 0) names->require(slot);
    }
  }
  if (op.id == op_id::kBackward) check_backward(instruction);
  if (op.id == op_id::kRequiresGrad) check_requires_grad(instruction, *names);
  const auto outputs = static_cast<size_t>(std::max<int8_t>(op.num_outputs, 0));
  check(ErrorKind::kValue, op.num_outputs < 0 || instruction.results.size() == outputs, "[", op.name, "] expected ",
        outputs, " result names, got ", instruction.results.size());
  for (Slot slot : instruction.results) {
    (instruction.flags & Instruction::kInto) != 0 ? names->require(slot) : names->define(slot);
  }
}

// Each integer has one expression at most, and those of a list are neighbours, so that it is copied once.
void check_order(absl::Span<const SizeArgument> sizes) {
  const auto place = [](const SizeArgument& size) { return std::tuple(size.instruction, size.arg, size.element); };
  const auto is_misplaced = [&](const SizeArgument& a, const SizeArgument& b) { return place(a) >= place(b); };
  check(ErrorKind::kValue, std::adjacent_find(sizes.begin(), sizes.end(), is_misplaced) == sizes.end(),
        "expected sizes of a Program in ascending order of instructions, arguments and elements");
}

void check_size(const SizeArgument& size, const Names& names) {
  check_size_expression(size.expression);
  for (const SizeTerm& term : size.expression) {
    check(ErrorKind::kValue, term.kind != SizeTerm::Kind::kSize || names.was_defined(term.name),
          "expected the size of a value that the Program has defined, got %", term.name);
  }
}

// Changes the scope's modes, which the destructor restores.
class Modes {
 public:
  explicit Modes(CallScope& scope)
      : scope_(scope),
        grad_enabled_(scope.grad_enabled),
        inference_(scope.inference),
        autocasts_(scope.autocasts),
        in_program_(std::exchange(scope.in_program, true)) {}
  ~Modes() {
    scope_.grad_enabled = grad_enabled_;
    scope_.inference = inference_;
    scope_.autocasts = autocasts_;
    scope_.in_program = in_program_;
  }
  Modes(const Modes&) = delete;
  Modes& operator=(const Modes&) = delete;

  void set(const Instruction& instruction) {
    scope_.inference = inference_ || (instruction.flags & Instruction::kInference) != 0;
    scope_.grad_enabled = grad_enabled_ && (instruction.flags & Instruction::kGrad) != 0 && !scope_.inference;
    scope_.autocasts = false;  // the Program contains its casts
    DefaultFloat::set(instruction.default_float());
    if (scope_.recorder != nullptr) [[unlikely]]
      scope_.recorder->begin(instruction);
  }

 private:
  CallScope& scope_;
  const bool grad_enabled_, inference_, autocasts_, in_program_;
  const DefaultFloat default_float_;
};

class ProgramRun {
 public:
  explicit ProgramRun(const ProgramInputs& inputs) {
    put_inputs(inputs, &slots_);
    if (const Account* account = CallScope::current().account.get()) host_room_ = account->host_room();
    for (const Tensor& tensor : inputs.read) protected_.insert(tensor->storage.get());
    for (const Tensor& tensor : inputs.constants) protected_.insert(tensor->storage.get());
    for (const Tensor& tensor : inputs.written) protected_.erase(tensor->storage.get());
  }

  void run(const Instruction& instruction, Modes* modes) {
    for (Slot slot : instruction.release) slots_.release(slot);
    const ResolvedArgs resolved(instruction, slots_);
    instruction.op->check_args(resolved.args());
    Call call;
    call.op = instruction.op;
    call.args = resolved.args();
    call.into = (instruction.flags & Instruction::kInto) != 0;
    if (call.into) {
      for (Slot slot : instruction.results) call.outputs.push_back(slots_.find(slot)->tensor);
    }
    if (call.into || writes_arguments(*call.op, call.args)) check_written(call);
    modes->set(instruction);
    Dispatcher::instance().dispatch(call);
    if (call.into) return;
    check_room();
    check(ErrorKind::kValue, call.outputs.size() == instruction.results.size(), "[", call.op->name, "] expected ",
          call.outputs.size(), " result names, got ", instruction.results.size());
    for (size_t i = 0; i < call.outputs.size(); ++i)
      slots_.put(instruction.results[i], {std::move(call.outputs[i]), nullptr});
  }

  Tensors outputs(const Program& program) const {
    Tensors outputs;
    for (Slot slot : program.outputs()) outputs.push_back(slots_.find(slot)->tensor);
    return outputs;
  }

 private:
  void check_written(const Call& call) const {
    for_each_written(call, [&](const Tensor& tensor) {
      check(!protected_.contains(tensor->storage.get()), "[", call.op->name,
            "] expected to write to results of the Program, or to the inputs that it may change, got another input");
    });
  }

  // The names of a run are part of its session's bookkeeping.
  void check_room() const {
    check(ErrorKind::kOutOfMemory, slots_.host_bytes() <= host_room_, "out of memory on the host: the ", slots_.size(),
          " names that the Program has at this instruction take ", slots_.host_bytes(), " bytes; the session has ",
          host_room_, " bytes left for bookkeeping");
  }

  SlotTable slots_;
  uint64_t host_room_ = UINT64_MAX;
  absl::flat_hash_set<const Storage*> protected_;  // of the inputs that the Program must not change
};

std::string context_of(size_t index, const Instruction& instruction,
                       absl::FunctionRef<std::string(uint32_t)> describe_site) {
  const std::string site = describe_site(instruction.site);
  return absl::StrCat(" (instruction ", index, " of a Program", site.empty() ? "" : ", ", site, ")");
}

}  // namespace

void put_inputs(const ProgramInputs& inputs, SlotTable* slots) {
  Slot name = 0;
  for (const Tensor& tensor : inputs.read) slots->put(++name, {tensor, nullptr});
  for (const Tensor& tensor : inputs.written) slots->put(++name, {tensor, nullptr});
  for (const Tensor& tensor : inputs.constants) slots->put(++name, {tensor, nullptr});
}

void check_program(const Program& program, size_t inputs) {
  check(ErrorKind::kValue, inputs <= Program::kMaxNames, "a Program has at most ", Program::kMaxNames, " inputs, got ",
        inputs);
  Names names(inputs);
  size_t index = 0;
  absl::Span<const SizeArgument> sizes = program.sizes();
  check_order(sizes);
  for (const Instruction& instruction : program.instructions()) {
    try {
      for (; !sizes.empty() && sizes[0].instruction == index; sizes.remove_prefix(1)) check_size(sizes[0], names);
      check_instruction(instruction, &names);
    } catch (Error& error) {
      error.append(absl::StrCat(" (instruction ", index, " of a Program)"));
      throw;
    }
    ++index;
  }
  check(ErrorKind::kValue, sizes.empty(), "expected sizes of instructions below ", index, ", got ",
        sizes.empty() ? 0 : sizes[0].instruction);
  absl::flat_hash_set<Slot> outputs;
  for (Slot slot : program.outputs()) {
    check(ErrorKind::kValue, names.exists(slot) && slot > inputs,
          "expected outputs of a Program to be results, got the name ", slot);
    check(ErrorKind::kValue, outputs.insert(slot).second, "expected distinct outputs of a Program, got ", slot,
          " twice");
  }
  check(ErrorKind::kValue, program.release().empty(), "a Program drops no names at its end, got ",
        program.release().size());
}

Tensors run_program(const Program& program, const ProgramInputs& inputs,
                    absl::FunctionRef<std::string(uint32_t)> describe_site) {
  ProgramRun run(inputs);
  Modes modes(CallScope::current());
  size_t index = 0;
  for (const Instruction& instruction : program.instructions()) {
    try {
      run.run(instruction, &modes);
    } catch (const Cancelled&) {
      throw;
    } catch (Error& error) {
      error.set_op(instruction.op->name);
      error.append(context_of(index, instruction, describe_site));
      throw Error(error);  // without the poison of a fused chain's step, which lacks this context
    }
    index += instruction.count;
  }
  return run.outputs(program);
}

}  // namespace tt
