// ProgramTypes: the metadata of every value of a Program, inferred by the operators' rules.
//
// A client infers the results of a Program that it has defined with it, and the engine knows the sizes of all values
// before the Program runs. Not thread-safe while it changes.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "engine/schema/meta.h"
#include "engine/schema/op.h"
#include "engine/schema/program.h"

namespace tt {

// Infers the results of a call in a Program: by the operator's rules, or for `backward`, which has none, one contiguous
// gradient per capture. Throws Error as the rules do, and NotImplementedError for an operator whose results' sizes
// depend on values.
void infer_in_program(const Op& op, Args args, bool grad_enabled, Inference* inferred);

// Infers the results of a call.
using InferCall = absl::FunctionRef<void(const Op& op, Args args, bool grad_enabled, Inference* inferred)>;

class ProgramTypes {
 public:
  // Describes only the inputs; add() describes results.
  explicit ProgramTypes(absl::Span<const TensorMeta* const> inputs);
  // `inputs` describe the names 1, 2, ...; gradients are recorded where the instruction's flags and `grad_enabled` say
  // so. Throws Error of the first instruction whose rules reject its arguments, and Error (ValueError) if the Program
  // has a name that it does not define, or an operator whose results depend on values. `infer_call` replaces
  // infer_in_program(), for Programs with operators that only passes write.
  ProgramTypes(const Program& program, absl::Span<const TensorMeta* const> inputs, bool grad_enabled,
               InferCall infer_call = infer_in_program);

  // Infers the results of the next instruction. Throws like the constructor.
  void add(const Instruction& instruction, bool grad_enabled, InferCall infer_call = infer_in_program);
  // Sets the metadata of a name. Throws Error (ValueError) for a name above Program::kMaxNames.
  void set(Slot slot, TensorMeta meta);

  // Requires that the Program defines the name, or that it is an input's.
  const TensorMeta& of(Slot slot) const { return metas_[slot]; }
  bool contains(Slot slot) const { return slot < metas_.size() && known_[slot]; }
  // The value that a view of a differentiable operator shares its storage with, which is no such view; of other values
  // themselves. Requires the same.
  Slot base_of(Slot slot) const { return bases_[slot] == 0 ? slot : bases_[slot]; }

 private:
  const TensorMeta* find(Slot slot) const;
  void require_grad(Slot slot);

  std::vector<TensorMeta> metas_;  // by name
  std::vector<bool> known_;
  std::vector<Slot> bases_;  // of views: the value that is none; 0: no view
  // By such a value that does not require grad, its views. Each leaves the list once.
  absl::flat_hash_map<Slot, std::vector<Slot>> constant_views_;
};

}  // namespace tt
