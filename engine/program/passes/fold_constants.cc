#include "engine/program/passes/fold_constants.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/device/cancellation.h"
#include "engine/dispatch/call_scope.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/program/passes/renamed_args.h"
#include "engine/program/passes/shared_memory.h"
#include "engine/program/passes/stateful.h"
#include "engine/program/passes/writes.h"
#include "engine/program/program_run.h"
#include "engine/schema/custom_operator.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "engine/schema/program_types.h"

namespace tt {
namespace {

int64_t bytes_of(const TensorMeta& meta) { return meta.numel() * static_cast<int64_t>(item_size(meta.dtype)); }

// Operators without tensors among their arguments whose results depend on nothing else either.
bool creates_constant(const Op& op) {
  switch (op.id) {
    case op_id::kZeros:
    case op_id::kOnes:
    case op_id::kFull:
    case op_id::kArange:
    case op_id::kArangeFrom:
    case op_id::kLinspace:
    case op_id::kLogspace:
    case op_id::kEye:
    case op_id::kLiteral: return true;
    default: return false;
  }
}

// Whether the operator does something besides its result, or reads something besides its arguments: those of
// engine/ops/{autograd,checkpoint,distributed,programs,pull,share,system}.yaml, and custom ones.
bool uses_session(const Op& op) {
  constexpr std::pair<uint16_t, uint16_t> kIds[] = {{600, 629}, {950, 979}, {1100, 1199}, {1320, 1329}, {1420, 1429}};
  return is_custom(op.id) || std::any_of(std::begin(kIds), std::end(kIds), [&](const auto& range) {
           return range.first <= op.id && op.id <= range.second;
         });
}

bool leaves_uninitialised(const Op& op) { return op.id == op_id::kEmptyLike || op.id == op_id::kNewEmpty; }

// The groups of names that a call may write, or that the Program returns.
absl::flat_hash_set<Slot> changeable(const Program& program, const MemoryGroups& groups) {
  absl::flat_hash_set<Slot> found;
  const auto add = [&](absl::Span<const Slot> names) {
    for (Slot slot : names) found.insert(groups.of(slot));
  };
  for (const Instruction& call : program.instructions()) {
    if (!writes_in_place(call)) continue;
    add(call.results);
    for (const Arg& arg : call.args) add(names_in(arg));
  }
  add(program.outputs());
  return found;
}

class Folding {
 public:
  // Keeps a reference to the Program.
  Folding(const Program& program, const ProgramTypes& types) : program_(program) {
    const MemoryGroups groups(program);
    const absl::flat_hash_set<Slot> may_change = changeable(program, groups);
    const auto is_constant = [&](Slot slot) { return slot == 0 || constant_.contains(slot); };
    for (const Instruction& call : program.instructions()) {
      const bool reads_constants = std::all_of(call.args.begin(), call.args.end(), [&](const Arg& arg) {
        return std::all_of(names_in(arg).begin(), names_in(arg).end(), is_constant);
      });
      const bool folds =
          reads_constants && is_pure(call) && std::all_of(call.results.begin(), call.results.end(), [&](Slot slot) {
            return may_keep(types.of(slot)) && !may_change.contains(groups.of(slot));
          });
      folds_.push_back(folds);
      if (folds) constant_.insert(call.results.begin(), call.results.end());
    }
    for (size_t i = 0; i < folds_.size(); ++i) {
      if (folds_[i]) continue;
      for (const Arg& arg : program.instructions()[i].args) {
        for (Slot slot : names_in(arg)) {
          if (slot != 0 && constant_.contains(slot) && kept_.insert(slot).second) names_.push_back(slot);
        }
      }
    }
    for (Slot slot : names_) bytes_ += bytes_of(types.of(slot));
  }

  // The constant results that other instructions read.
  const std::vector<Slot>& names() const { return names_; }
  int64_t bytes() const { return bytes_; }

  // The instructions that compute them.
  Program constant_part() const { return part(true, names_); }
  // Leaves the other instructions in the Program, which must be the constructor's. The constants get the names after
  // those of the inputs, and other results the following ones.
  void remove(Program* program, size_t inputs) const {
    absl::flat_hash_map<Slot, Slot> renamed;
    for (size_t i = 0; i < names_.size(); ++i) renamed[names_[i]] = inputs + 1 + i;
    *program = part(false, program_.outputs());
    program->rename([&](Slot slot) {
      const auto found = renamed.find(slot);
      return found != renamed.end() ? found->second : slot <= inputs ? slot : slot + names_.size();
    });
    remove_unused(program);
  }

 private:
  static bool is_pure(const Instruction& call) {
    const bool reads_tensors =
        std::any_of(call.args.begin(), call.args.end(), [](const Arg& arg) { return !names_in(arg).empty(); });
    return !call.results.empty() && (reads_tensors || creates_constant(*call.op)) && !is_stateful(call) &&
           !writes_in_place(call) && !call.op->is_dynamic && !uses_session(*call.op) && !leaves_uninitialised(*call.op);
  }
  static bool may_keep(const TensorMeta& meta) {
    return meta.device.type == DeviceType::kCPU && !meta.requires_grad && bytes_of(meta) <= Constants::kMaxValueBytes;
  }
  Program part(bool constant, absl::Span<const Slot> outputs) const {
    Program made = program_;
    std::vector<Instruction> instructions;
    for (size_t i = 0; i < folds_.size(); ++i) {
      if (folds_[i] == constant) instructions.push_back(made.instructions()[i]);
    }
    made.mutable_instructions() = std::move(instructions);
    made.set_outputs(outputs);
    remove_unused(&made);
    return made;
  }

  const Program& program_;
  std::vector<bool> folds_;  // by instruction
  absl::flat_hash_set<Slot> constant_, kept_;
  std::vector<Slot> names_;
  int64_t bytes_ = 0;
};

// Bytes of the storages, of which a value may be a small part.
uint64_t stored_bytes(const Tensors& values) {
  uint64_t bytes = 0;
  absl::flat_hash_set<const Storage*> counted;
  for (const Tensor& value : values) {
    if (counted.insert(value->storage.get()).second) bytes += value->storage->bytes();
  }
  return bytes;
}

// Copies of the tensors over storages that no session owns. Tensors over one storage share the copy.
Constants frozen(const Tensors& values) {
  Constants constants;
  constants.too_large = stored_bytes(values) > Constants::kMaxBytes;
  if (constants.too_large) return constants;
  CallScope& scope = CallScope::current();
  const std::shared_ptr<Account> account = std::exchange(scope.account, nullptr);
  const absl::Cleanup restored = [&] { scope.account = account; };
  absl::flat_hash_map<const Storage*, Ref<Storage>> copies;
  for (const Tensor& value : values) {
    Ref<Storage>& copy = copies[value->storage.get()];
    if (!copy) {
      const size_t bytes = value->storage->bytes();
      copy = Ref<Storage>(new Storage(Device{}, bytes));
      if (bytes > 0) std::memcpy(copy->data(), value->storage->data(), bytes);
      copy->freeze();
      constants.bytes += bytes;
    }
    constants.values.emplace_back(new TensorImpl(value.meta(), copy));
  }
  return constants;
}

}  // namespace

Constants fold_constants(Program* program, absl::Span<const TensorMeta* const> metas, bool grad_enabled) {
  const Folding folding(*program, ProgramTypes(*program, metas, grad_enabled));
  if (folding.names().empty()) return {};
  Constants constants;
  constants.too_large = folding.bytes() > Constants::kMaxBytes;
  if (constants.too_large || last_name(*program) + folding.names().size() > Program::kMaxNames) return constants;
  try {
    constants = frozen(run_program(folding.constant_part(), {}, [](uint32_t) { return std::string(); }));
  } catch (const Cancelled&) {
    throw;
  } catch (const Error&) {
    return {};
  }
  if (!constants.too_large) folding.remove(program, metas.size());
  return constants;
}

std::vector<Tensor> for_session(const Constants& constants) {
  const std::shared_ptr<Account>& account = CallScope::current().account;
  std::vector<Tensor> tensors;
  tensors.reserve(constants.values.size());
  for (const Tensor& value : constants.values)
    tensors.emplace_back(new TensorImpl(value.meta(), Storage::over(value->storage, account)));
  return tensors;
}

}  // namespace tt
