#include "engine/program/executor.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "engine/device/cancellation.h"
#include "engine/dispatch/call_scope.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/dispatch/instruction_grad.h"
#include "engine/dispatch/partial_writes.h"
#include "engine/memory/bytes.h"
#include "engine/program/chain_code.h"
#include "engine/program/resolved_args.h"
#include "engine/schema/default_float.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

// If an account has more room than this for bookkeeping, ordinary instructions are not checked individually.
constexpr uint64_t kHostRoomThreshold = uint64_t{1} << 20;

PoisonRef make_poison(const Instruction& instruction, ErrorKind kind, std::string message) {
  return make_poison(kind, std::move(message), instruction.op->name, instruction.site);
}

// Updates the bookkeeping bytes charged to the account; returns how many more bytes it may use.
uint64_t host_room(const SlotTable& slots) {
  const CallScope& scope = CallScope::current();
  if (!scope.account) return UINT64_MAX;
  scope.account->set_bookkeeping(slots.host_bytes() + scope.bookkeeping_bytes(), slots.size());
  return scope.account->host_room();
}

void release(const Instruction& instruction, SlotTable& slots) {
  for (Slot slot : instruction.release) {
    if (!slots.release(slot)) {
      refuse_instruction(ErrorKind::kValue, *instruction.op,
                         absl::StrCat("cannot release tensor ", slot, ": it does not exist"));
    }
  }
}

void check_count(const Instruction& instruction, size_t outputs) {
  if (instruction.results.size() == outputs) return;
  refuse_instruction(ErrorKind::kValue, *instruction.op,
                     absl::StrCat("expected ", outputs, " result names, ", instruction.results.size(), " were given"));
}

// Checks that the names of the results are new. Called before anything is executed.
void check_names(const Instruction& instruction, const SlotTable& slots) {
  if (instruction.results.size() > slots.limit() - slots.size()) {
    refuse_instruction(ErrorKind::kValue, *instruction.op,
                       absl::StrCat("a session has at most ", slots.limit(), " handles"));
  }
  for (Slot slot : instruction.results) {
    if (slot == 0) refuse_instruction(ErrorKind::kValue, *instruction.op, "the result name 0 is invalid");
    if (slots.find(slot))
      refuse_instruction(ErrorKind::kValue, *instruction.op, absl::StrCat("the name ", slot, " is in use"));
  }
}

// Finds the out tensors. Returns the poison of the first poisoned one, or null.
PoisonRef find_targets(const Instruction& instruction, const SlotTable& slots, Tensors* targets) {
  PoisonRef poison;
  for (Slot slot : instruction.results) {
    const SlotValue* value = slots.find(slot);
    if (!value)
      refuse_instruction(ErrorKind::kValue, *instruction.op, absl::StrCat("out tensor ", slot, " does not exist"));
    if (value->poison && !poison) poison = value->poison;
    targets->push_back(value->tensor);
  }
  return poison;
}

void poison_results(const Instruction& instruction, SlotTable& slots, const PoisonRef& poison, bool keeps_targets) {
  for (Slot slot : instruction.results) {
    if ((instruction.flags & Instruction::kInto) == 0) {
      slots.put(slot, {Tensor(), poison});
    } else if (!keeps_targets) {
      slots.poison(slot, poison);
    }
  }
}

// Calls visit(slot) for each tensor among the arguments of parameters that satisfy `is_wanted`.
template <typename Wanted, typename Visit>
void visit_args(const Instruction& instruction, const Wanted& is_wanted, const Visit& visit) {
  const auto& params = instruction.op->params;
  for (size_t i = 0; i < instruction.args.size() && i < params.size(); ++i) {
    if (!is_wanted(params[i])) continue;
    const Arg& arg = instruction.args[i];
    if (arg.kind == Arg::Kind::kSlot) visit(arg.slot);
    for (uint32_t j = 0; arg.kind == Arg::Kind::kSlots && j < arg.size; ++j) visit(arg.slots[j]);
  }
}

// Calls visit(slot) for each `Tensor(w)` argument, which the operator writes in place.
template <typename Visit>
void visit_written(const Instruction& instruction, const Visit& visit) {
  visit_args(
      instruction, [](const Param& param) { return param.written; }, visit);
}

// Withholds the tensors that a failed or skipped instruction should have written, under every name that shares their
// storages. The results do not suffice to report the error: an optimizer step may have none, and other views of the
// written tensors are not among them.
void withhold_written(const Instruction& instruction, SlotTable& slots, const PoisonRef& poison) {
  absl::flat_hash_set<const void*> withheld;  // storages, and tensors without one
  const auto identity = [](const Tensor& tensor) -> const void* {
    if (tensor->storage) return tensor->storage.get();
    return tensor.get();
  };
  auto add = [&](Slot slot) {
    const SlotValue* value = slots.find(slot);
    if (value && value->tensor && !value->poison) withheld.insert(identity(value->tensor));
  };
  if (instruction.flags & Instruction::kInto) {
    for (Slot slot : instruction.results) add(slot);
  }
  // An operator without results changes the state of its tensors, such as their gradients.
  const bool has_no_results = poison->keeps_targets && instruction.results.empty();
  visit_args(
      instruction, [&](const Param& param) { return param.written || has_no_results; }, add);
  if (withheld.empty()) return;
  slots.withhold_where([&](const Tensor& tensor) { return withheld.contains(identity(tensor)); }, poison);
}

// Whether the instruction needs the values of tensors, given its resolved arguments. False for views that copy nothing.
bool needs_values(const Instruction& instruction, Args args) {
  if (!Executor::uses_tensors(instruction)) return false;
  const Op& op = *instruction.op;
  if (!op.is_view || (instruction.flags & Instruction::kInto) != 0) return true;
  op.check_args(args);
  Inference inferred;
  try {
    infer(op, args, /*grad_enabled=*/false, &inferred);
  } catch (const Error&) {
    return false;  // the call fails before it reads a value
  }
  return !inferred.alias && !inferred.outputs.empty();
}

// Poisons the `Tensor(w)` arguments of an instruction that the engine's time limit stopped. The client did not request
// the cancellation, and the instruction may have no results to store the error in.
void poison_written(const Instruction& instruction, SlotTable& slots, const PoisonRef& poison) {
  visit_written(instruction, [&](Slot slot) { slots.poison(slot, poison); });
}

void set_scope(const Instruction& instruction) {
  CallScope& scope = CallScope::current();
  scope.inference = (instruction.flags & Instruction::kInference) != 0;
  scope.grad_enabled = (instruction.flags & Instruction::kGrad) != 0 && !scope.inference;
  InstructionGrad::set(scope.grad_enabled);
  scope.autocasts = scope.autocast.state.enabled();
  DefaultFloat::set(instruction.default_float());
  scope.site = instruction.site;
  scope.first_result = instruction.results.empty() ? 0 : instruction.results[0];
}

void begin(const Instruction& instruction, SlotTable& slots) {
  CallScope& scope = CallScope::current();
  scope.activity.begin_instruction(instruction.op->id, instruction.site);
  if (scope.observes_kernels()) [[unlikely]]
    scope.before_instruction(slots, *instruction.op, instruction.count, instruction.site);
}

// Executes a call whose arguments have no errors. Returns its error, or null.
PoisonRef execute(const Instruction& instruction, Args args, Call* call) {
  instruction.op->check_args(args);
  set_scope(instruction);
  call->op = instruction.op;
  call->args = args;
  return try_dispatch(*call, instruction.site);
}

// Poisons every name whose storage the failed kernel may have partly written.
void poison_partial_writes(SlotTable& slots, const PoisonRef& poison) {
  const PartialWrites::Storages written = PartialWrites::take();
  if (written.empty()) return;
  absl::flat_hash_set<const Storage*> storages;
  for (const Ref<Storage>& storage : written) storages.insert(storage.get());
  slots.poison_where([&](const Tensor& tensor) { return storages.contains(tensor->storage.get()); }, poison);
}

}  // namespace

void Executor::clear() {
  out_of_memory_ = nullptr;
  unavailable_ = nullptr;
  next_ = done_ = 0;
  resumed_ = false;
}

std::shared_ptr<Suspension> Executor::run(const Program& program, SlotTable& slots, size_t count) {
  const auto observe = [](bool suspended) {
    if (CallScope& scope = CallScope::current(); scope.observes_kernels()) [[unlikely]]
      scope.after_instructions(suspended);
  };
  const DefaultFloat default_float;  // set by set_scope()
  const std::vector<Instruction>& instructions = program.instructions();
  size_t i = std::exchange(next_, 0);
  size_t done = std::exchange(done_, 0);
  has_host_room_ = has_room(slots);
  try {
    for (; i < instructions.size() && done < count; ++i, has_host_room_ = has_room(slots)) {
      run_one(instructions[i], slots);
      done += instructions[i].count;
    }
  } catch (Suspended& suspended) {
    next_ = i;
    done_ = done;
    resumed_ = true;
    observe(true);
    return std::move(suspended.suspension);
  } catch (Error& e) {
    resumed_ = false;
    throw ProgramFault{done, std::move(e)};
  }
  if (count != kAll) {
    next_ = i;
    done_ = done;
  }
  observe(false);
  stats_.fused += std::exchange(CallScope::current().fused, 0);
  if (has_host_room_) out_of_memory_ = nullptr;
  return nullptr;
}

bool Executor::uses_tensors(const Instruction& instruction) {
  if (instruction.flags & Instruction::kInto) return true;
  return absl::c_any_of(instruction.op->params, [](const Param& param) {
    return param.type == ParamType::kTensor || param.type == ParamType::kTensors;
  });
}

bool Executor::has_room(const SlotTable& slots) const {
  return host_room(slots) >= kHostRoomThreshold && !unavailable_;
}

// Returns null if there is room for the instruction's bookkeeping and the values that it needs are available, otherwise
// the error for its results.
PoisonRef Executor::check_room(const Instruction& instruction, Args args, const SlotTable& slots) {
  if (unavailable_ && needs_values(instruction, args)) return unavailable_;
  if (Account* const charged = CallScope::current().account.get(); charged != nullptr && charged->quota()) {
    charged->report();  // earlier instructions of this frame, or other sessions, may have made room
  }
  const size_t results = std::max<size_t>(instruction.results.size(), 1);
  if (host_room(slots) >= results * SlotTable::kTensorBytes) return nullptr;
  const Account& account = *CallScope::current().account;
  const std::string message =
      absl::StrCat("out of memory on the host: ", account.bookkeeping_refusal(results * SlotTable::kTensorBytes));
  if (account.is_overdrawn()) refuse_instruction(ErrorKind::kOutOfMemory, *instruction.op, message);
  // An instruction without results cannot store the error, so it is executed; the account's overdraft covers its
  // bookkeeping.
  if (instruction.results.empty()) return nullptr;
  if (!out_of_memory_) {
    out_of_memory_ = make_poison(instruction, ErrorKind::kOutOfMemory,
                                 absl::StrCat("[", message_part(instruction.op->name), "] ", message));
  }
  return out_of_memory_;
}

void Executor::run_one(const Instruction& instruction, SlotTable& slots) {
  const Op& op = *instruction.op;
  const bool into = (instruction.flags & Instruction::kInto) != 0;
  begin(instruction, slots);
  if (!std::exchange(resumed_, false)) release(instruction, slots);
  ResolvedArgs resolved(instruction, slots);
  if (op.num_outputs >= 0) check_count(instruction, static_cast<size_t>(op.num_outputs));
  Call call;
  PoisonRef poison = resolved.poison();
  if (into) {
    PoisonRef of_target = find_targets(instruction, slots, &call.outputs);
    if (!poison) poison = std::move(of_target);
  } else {
    check_names(instruction, slots);
  }
  const bool is_chain = op.id == op_id::kPointwiseChain && !into;
  if (is_chain && poison && run_steps(instruction, slots)) [[unlikely]]
    return;
  const bool is_large = instruction.results.size() * SlotTable::kTensorBytes > kHostRoomThreshold;
  if ((!has_host_room_ || is_large) && !poison) [[unlikely]]
    poison = check_room(instruction, resolved.args(), slots);
  if (!poison) [[likely]] {
    call.into = into;
    poison = execute(instruction, resolved.args(), &call);
    if (poison && is_chain && instruction.results.size() > 1 && run_steps(instruction, slots)) [[unlikely]]
      return;
    stats_.failed += poison != nullptr;
  } else {
    CallScope::current().on_skipped(op, resolved.args(), Error(poison->kind, poison->message), instruction.site);
  }
  stats_.instructions += instruction.count;
  if (poison) [[unlikely]] {
    const Cancellation* request = Cancellation::current();
    const CancelReason reason = request != nullptr ? request->reason() : CancelReason::kNone;
    // After a client's own cancellation the tensors keep their values, because the client expects that nothing was
    // written.
    const bool keeps_targets = reason == CancelReason::kNone || poison->keeps_targets;
    if (keeps_targets) withhold_written(instruction, slots, poison);
    poison_results(instruction, slots, poison, keeps_targets);
    poison_partial_writes(slots, poison);
    if (reason == CancelReason::kTimeLimit && !poison->keeps_targets) poison_written(instruction, slots, poison);
    return;
  }
  if (into) return;
  check_count(instruction, call.outputs.size());
  for (size_t i = 0; i < call.outputs.size(); ++i)
    slots.put(instruction.results[i], {std::move(call.outputs[i]), nullptr});
}

// Executes the steps of a chain of which a step has failed, or an input is poisoned, as single instructions: those on
// which a result depends that can be computed. Returns false, and changes nothing, if the code is invalid, draws random
// numbers or needs more names than there may be.
bool Executor::run_steps(const Instruction& chain, SlotTable& slots) {
  if (chain.args.size() != 2 || chain.args[0].kind != Arg::Kind::kSlots || chain.args[1].kind != Arg::Kind::kInts) {
    return false;
  }
  const absl::Span<const Slot> inputs = names_in(chain.args[0]);
  CodedSteps steps;
  try {
    steps = read_chain({chain.args[1].integers, chain.args[1].size}, inputs.size());
  } catch (const Error&) {
    return false;  // the dispatcher reports it
  }
  const size_t count = steps.size();
  const auto is_result = [&](size_t i) { return steps[i].kept || i + 1 == count; };
  size_t results = 0;
  for (size_t i = 0; i < count; ++i) results += is_result(i);
  if (results != chain.results.size() || absl::c_linear_search(inputs, Slot{0}) ||
      absl::c_any_of(steps, [](const CodedStep& step) { return step.op->is_random; }) || cancel_requested()) {
    return false;
  }
  std::vector<bool> is_poisoned(count), is_wanted(count);
  std::vector<size_t> last_use(count);
  const auto visit_tensors = [&](size_t i, const auto& visit) {
    for (size_t a = 0; a < steps[i].args.size(); ++a) {
      if (steps[i].from[a] < 0) continue;
      visit(a, steps[i].args[a].kind == Arg::Kind::kSlot, static_cast<size_t>(steps[i].from[a]));
    }
  };
  for (size_t i = 0; i < count; ++i) {
    last_use[i] = is_result(i) ? count : i;
    visit_tensors(i, [&](size_t, bool is_step, size_t from) {
      if (is_step) last_use[from] = std::max(last_use[from], i);
      if (is_step ? is_poisoned[from] : slots.find(inputs[from])->poison != nullptr) is_poisoned[i] = true;
    });
  }
  for (size_t i = count; i-- > 0;) {
    if (is_result(i) && !is_poisoned[i]) is_wanted[i] = true;
    if (!is_wanted[i]) continue;
    visit_tensors(i, [&](size_t, bool is_step, size_t from) {
      if (is_step) is_wanted[from] = true;
    });
  }
  // Not in the table, where a client's names are.
  std::vector<SlotValue> values(count);
  const auto value_of = [&](bool is_step, size_t from) -> const SlotValue& {
    return is_step ? values[from] : *slots.find(inputs[from]);
  };
  size_t result = 0;
  stats_.instructions += chain.count;
  for (size_t i = 0; i < count; ++i) {
    absl::InlinedVector<Arg, 4> args = steps[i].args;
    absl::InlinedVector<Tensor, 4> used;  // by `args`
    PoisonRef poison;                     // that of the first argument that has one
    if (is_poisoned[i] || is_wanted[i]) {
      visit_tensors(i, [&](size_t a, bool is_step, size_t from) {
        const SlotValue& value = value_of(is_step, from);
        if (value.poison && !poison) poison = value.poison;
        used.push_back(value.tensor);
        args[a] = Arg(value.tensor.get());
      });
    }
    if (is_poisoned[i])
      values[i].poison = std::move(poison);
    else if (is_wanted[i])
      values[i] = run_step(steps[i], chain, args, std::move(poison), slots);
    if (is_result(i)) slots.put(chain.results[result++], values[i]);
    for (size_t done = 0; done <= i; ++done) {
      if (last_use[done] == i) values[done] = {};
    }
    has_host_room_ = has_room(slots);
  }
  return true;
}

// Computes the result of a step of `chain`. `poison` is the error of its arguments, or null.
SlotValue Executor::run_step(const CodedStep& step, const Instruction& chain, Args args, PoisonRef poison,
                             SlotTable& slots) {
  Instruction instruction = chain;
  instruction.op = step.op;
  instruction.site = step.site;
  instruction.results = {&step.result, 1};
  instruction.count = 0;
  begin(instruction, slots);
  if (!has_host_room_ && !poison) poison = check_room(instruction, args, slots);
  Call call;
  if (!poison) {
    poison = execute(instruction, args, &call);
    stats_.failed += poison != nullptr;
    if (poison) poison_partial_writes(slots, poison);
  } else {
    CallScope::current().on_skipped(*step.op, args, Error(poison->kind, poison->message), step.site);
  }
  if (poison) return {Tensor(), std::move(poison)};
  check_count(instruction, call.outputs.size());
  return {std::move(call.outputs[0]), nullptr};
}

}  // namespace tt
