#include "engine/program/passes/remove_identities.h"

#include <cmath>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/program/passes/inferred_call.h"
#include "engine/program/passes/renamed_args.h"
#include "engine/program/passes/shared_memory.h"
#include "engine/program/passes/writes.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

// An instruction's argument, or the default of its parameter.
const Arg& arg_of(const Instruction& call, size_t i) {
  return i < call.args.size() ? call.args[i] : call.op->params[i].default_value;
}

Slot slot_of(const Arg& arg) { return arg.kind == Arg::Kind::kSlot ? arg.slot : 0; }

bool is_number(const Arg& arg, double value) { return arg.is_real_number() && arg.to_double() == value; }

size_t num_tensors(const Instruction& call) {
  size_t count = 0;
  for (const Arg& arg : call.args) count += names_in(arg).size();
  return count;
}

// The tensor of a call with a tensor and a number for which `is_neutral` is true, in either order; 0 if there is none.
template <typename IsNeutral>
Slot beside(const Instruction& call, IsNeutral is_neutral) {
  const Arg &a = arg_of(call, 0), &b = arg_of(call, 1);
  if (is_neutral(b)) return slot_of(a);
  return is_neutral(a) ? slot_of(b) : 0;
}

class Identities {
 public:
  Identities(const ProgramTypes& types, bool keeps_errors) : types_(types), keeps_errors_(keeps_errors) {}

  // The earlier name with the bits of the only result of the call; 0 if there is none.
  Slot find(const Instruction& call) const {
    const Slot result = call.results[0];
    if (types_.of(result).requires_grad) return 0;
    const Slot argument = unchanged_argument(call);
    if (argument != 0 && is_same(argument, result)) return argument;
    if (!is_tracked_view(call)) return 0;
    const Slot base = types_.base_of(result);
    if (geometry(result) == geometry(base)) return base;
    const auto view = views_.find(geometry(result));
    return view == views_.end() ? 0 : view->second;
  }

  // The tensor that the call, a reshape, may read instead of its argument, which is a reshape of it; 0 if there is
  // none.
  Slot earlier_source(const Instruction& call) const {
    if (!is_reshape(call)) return 0;
    std::vector<Arg> args(call.args.begin(), call.args.end());
    const Slot source = slot_of(args[0]);
    Slot found = 0, next = source;
    constexpr int kMaxSteps = 8;  // hostile Programs may have long chains
    for (int step = 0; step < kMaxSteps; ++step) {
      const auto producer = definitions_.find(next);
      if (producer == definitions_.end() || !is_reshape(producer->second)) return found;
      next = slot_of(arg_of(producer->second, 0));
      if (next == 0 || types_.base_of(next) != types_.base_of(source) || types_.of(source).requires_grad) return found;
      args[0] = slot_arg(next);
      if (has_result(types_.of(call.results[0]), *call.op, args, call.flags, types_)) found = next;
    }
    return found;
  }

  // Call for every instruction that is kept, in their order.
  void add(const Instruction& call) {
    if (call.results.size() != 1) return;
    const Slot result = call.results[0];
    definitions_[result] = call;
    if (is_untracked(call)) {
      untracked_.insert(result);
    } else if (is_tracked_view(call)) {
      views_.try_emplace(geometry(result), result);
    }
  }

 private:
  using Geometry = std::tuple<Slot, DType, int64_t, Sizes, Sizes>;  // base, dtype, offset, sizes, strides

  Geometry geometry(Slot slot) const {
    const TensorMeta& meta = types_.of(slot);
    return {types_.base_of(slot), meta.dtype, meta.offset, meta.sizes, meta.strides};
  }

  bool is_same(Slot a, Slot b) const {
    const TensorMeta &from = types_.of(a), &to = types_.of(b);
    return from.dtype == to.dtype && from.sizes == to.sizes && from.strides == to.strides && from.device == to.device;
  }

  // Whether the call's offset does not follow from that of its argument, which may be another one in the next run, or
  // its errors not from those of its argument.
  bool is_untracked(const Instruction& call) const {
    if (call.op->id == op_id::kAsStrided) return true;
    if (!call.op->is_view || call.args.empty()) return false;
    return (keeps_errors_ && num_tensors(call) > 1) || untracked_.contains(slot_of(call.args[0]));
  }
  // Whether the result is a view of another name, and its geometry says which elements it has.
  bool is_tracked_view(const Instruction& call) const {
    return call.op->is_view && call.results.size() == 1 && !types_.of(call.results[0]).requires_grad &&
           types_.base_of(call.results[0]) != call.results[0] && !is_untracked(call);
  }

  static bool is_reshape(const Instruction& call) {
    const uint16_t id = call.op->id;
    return id == op_id::kReshape || id == op_id::kView || id == op_id::kFlatten || id == op_id::kUnflatten ||
           id == op_id::kSqueeze || id == op_id::kSqueezeDim || id == op_id::kUnsqueeze;
  }

  // The argument whose values are those of the result, if dtype, sizes and layout are.
  Slot unchanged_argument(const Instruction& call) const {
    const DType dtype = types_.of(call.results[0]).dtype;
    const auto has_default_alpha = [&] { return is_number(arg_of(call, 2), 1); };
    switch (call.op->id) {
      case op_id::kMul: return is_complex(dtype) ? 0 : beside(call, [](const Arg& arg) { return is_number(arg, 1); });
      case op_id::kDiv:
        return !is_complex(dtype) && is_number(arg_of(call, 1), 1) && arg_of(call, 2).is_none()
                   ? slot_of(arg_of(call, 0))
                   : 0;
      case op_id::kSub:
        return !is_complex(dtype) && is_number(arg_of(call, 1), 0) && !std::signbit(arg_of(call, 1).to_double()) &&
                       has_default_alpha()
                   ? slot_of(arg_of(call, 0))
                   : 0;
      case op_id::kAdd:
        if (is_complex(dtype) || !has_default_alpha()) return 0;
        return beside(call, [&](const Arg& arg) {
          return is_number(arg, 0) && (!is_floating(dtype) || std::signbit(arg.to_double()));
        });
      case op_id::kNeg:
      case op_id::kLogicalNot:
      case op_id::kBitwiseNot: {
        const Instruction* const inner = producer_of(call);
        return inner != nullptr && inner->op == call.op ? slot_of(arg_of(*inner, 0)) : 0;
      }
      case op_id::kRelu:
      case op_id::kAbs: {
        const Instruction* const inner = producer_of(call);
        return inner != nullptr && inner->op == call.op ? slot_of(arg_of(call, 0)) : 0;
      }
      case op_id::kMaximum:
      case op_id::kMinimum: return slot_of(arg_of(call, 0)) == slot_of(arg_of(call, 1)) ? slot_of(arg_of(call, 0)) : 0;
      case op_id::kWhere:
        if (keeps_errors_) return 0;  // those of the condition
        return slot_of(arg_of(call, 1)) == slot_of(arg_of(call, 2)) ? slot_of(arg_of(call, 1)) : 0;
      case op_id::kDropout:
        return is_number(arg_of(call, 1), 0) || !arg_of(call, 2).to_bool() ? slot_of(arg_of(call, 0)) : 0;
      case op_id::kClone:
      case op_id::kToDtype:
      case op_id::kContiguous: return slot_of(arg_of(call, 0));
      default: return 0;
    }
  }

  // The call that computes the first argument; null for an input.
  const Instruction* producer_of(const Instruction& call) const {
    const auto found = definitions_.find(slot_of(arg_of(call, 0)));
    return found == definitions_.end() ? nullptr : &found->second;
  }

  const ProgramTypes& types_;
  const bool keeps_errors_;
  absl::flat_hash_map<Slot, Instruction> definitions_;  // by result, with the names that are left
  absl::flat_hash_map<Geometry, Slot> views_;           // the first name of a geometry
  absl::flat_hash_set<Slot> untracked_;                 // results of as_strided and the like, and views of them
};

}  // namespace

void remove_identities(Program* program, const ProgramTypes& types, bool keeps_errors) {
  if (writes_in_place(*program)) return;
  const absl::flat_hash_set<Slot> shared = names_shared_with_outputs(*program);
  absl::flat_hash_map<Slot, Slot> same;
  const auto name_of = [&](Slot slot) {
    const auto found = same.find(slot);
    return found == same.end() ? slot : found->second;
  };
  Identities identities(types, keeps_errors);
  std::vector<Instruction> kept;
  for (Instruction call : program->instructions()) {
    if (!same.empty()) call.args = renamed_args(call.args, name_of, &program->memory());
    call.release = {};
    if (call.results.size() == 1) {
      const Slot earlier = name_of(identities.find(call));  // a base may be a name that was replaced itself
      if (earlier != 0 && !shared.contains(call.results[0])) {
        same[call.results[0]] = earlier;
        continue;
      }
      if (const Slot source = identities.earlier_source(call); source != 0) {
        std::vector<Arg> args(call.args.begin(), call.args.end());
        args[0] = slot_arg(source);
        call.args = program->copy_args(args);
      }
    }
    identities.add(call);
    kept.push_back(call);
  }
  program->mutable_instructions() = std::move(kept);
}

}  // namespace tt
