// client::TracedSizes: how the numbers of a trace depend on the sizes of its inputs.
//
// What a traced function computes from sizes is an expression, which every run evaluates for its own inputs, as long as
// it is used in arithmetic and as an argument of operators. Where the function needs a number (a comparison, a loop, a
// list's length), the trace continues with the number of the example, and its Program requires the same answer of every
// run: a SizeRequirement.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "engine/schema/program.h"
#include "engine/schema/program_types.h"
#include "engine/schema/size_expression.h"
#include "engine/symbolic/facts.h"

namespace tt::client {

// What runs of a Program must have in common with the trace: `left relation right` is `expected`.
struct SizeRequirement {
  enum class Relation : uint8_t { kEqual, kLess, kLessEqual };

  std::vector<SizeTerm> left, right;
  Relation relation = Relation::kEqual;
  bool expected = true;
  size_t instruction = 0;  // the number of instructions before which it was needed
  std::string where;       // the line of the function
};

// The values of both sides of a requirement for values of these types, and whether it holds.
struct RequirementValues {
  int64_t left, right;
  bool holds;
};
// Throws Error (ValueError) if a value has too few dimensions, or as evaluate() does.
RequirementValues evaluate_requirement(const SizeRequirement& requirement, const ProgramTypes& types);

// A number of a trace.
struct TracedNumber {
  static constexpr int32_t kConstant = -1;

  int64_t value = 0;               // for the example
  int32_t expression = kConstant;  // a number of TracedSizes
  bool is_constant() const { return expression == kConstant; }
};

// Owned by a ProgramTrace, on its thread. Names are those of the trace.
class TracedSizes {
 public:
  // Without expressions, all numbers are constants, and sizes that the function reads are requirements.
  explicit TracedSizes(bool has_expressions) : has_expressions_(has_expressions) {}

  // Inputs 0, 1, ... have the names 1, 2, .... Sizes of at least 2 are variables unless `is_static(input, dim)`: other
  // ones decide which dimensions are broadcast. Call once, first.
  void add_inputs(absl::Span<const TensorMeta* const> inputs,
                  absl::FunctionRef<bool(size_t input, size_t dim)> is_static);
  // Instead of add_inputs(), also between calls: an input of which the sizes `dims` are variables.
  void add_input(Slot name, const TensorMeta& meta, absl::Span<const size_t> dims);
  void add_captured(Slot name, const TensorMeta& meta);
  // Follows a call of the trace. `program` ends with its instruction and its sizes().
  void add_call(const Program& program, absl::Span<const TensorMeta* const> results);

  // `where` describes the line of the function, if it is needed.
  using Where = absl::FunctionRef<std::string()>;
  // Requires of runs what a term describes: `value` for the example.
  void require_value(const SizeTerm& term, int64_t value, size_t instruction, Where where);
  // The size that the function reads. `instruction`: the number of calls so far.
  TracedNumber size_of(Slot name, const TensorMeta& meta, size_t dim, size_t instruction, Where where);
  // Throws Error (ValueError) as evaluate() does.
  TracedNumber combine(SizeTerm::Kind kind, const TracedNumber& a, const TracedNumber& b, size_t instruction,
                       Where where);
  bool compare(SizeRequirement::Relation relation, const TracedNumber& a, const TracedNumber& b, size_t instruction,
               Where where);
  int64_t constant(const TracedNumber& number, size_t instruction, Where where);

  // A number that stands for an expression in the arguments of a call of this trace, and the reverse for all integers
  // among the arguments, which it replaces by their values for the example. Arithmetic with such a number gives one
  // with the pattern destroyed: then throws Error (RuntimeError).
  int64_t mark(const TracedNumber& number, size_t instruction, Where where);
  bool has_marks(Args args) const;
  // The number of a mark; another number itself. Throws as take_marks() does.
  TracedNumber number_of(int64_t number) const;
  // `args` and `lists` must stay valid until add_sizes().
  std::vector<SizeArgument> take_marks(std::vector<Arg>* args, std::vector<std::vector<int64_t>>* lists) const;

  // Whether the function has received an expression.
  bool gave_expressions() const { return !expressions_.empty(); }
  // The requirements and the rank of each value by its name, after all names are replaced.
  std::vector<SizeRequirement> take_requirements(absl::FunctionRef<Slot(Slot)> name_of);
  const std::vector<std::pair<Slot, size_t>>& ranks() const { return ranks_; }

 private:
  bool depends(Slot name, size_t dim);
  // Puts symbols in the place of sizes.
  void make_symbols(TensorMeta* meta, absl::FunctionRef<bool(size_t dim)> is_variable);
  void add_requirement(SizeRequirement requirement, Where where);
  std::vector<SizeTerm> terms_of(const TracedNumber& number) const;

  const bool has_expressions_;
  // The types of all values, in which variable sizes are symbols: they show the sizes that depend on these. What a rule
  // assumes of the symbols is not required of runs, whose sizes are inferred again, and is forgotten after the call: a
  // size that is constant only under an assumption is required when the function reads it.
  std::unique_ptr<symbolic::Facts> facts_ = std::make_unique<symbolic::Facts>();
  ProgramTypes types_{absl::Span<const TensorMeta* const>()};
  std::vector<std::vector<SizeTerm>> expressions_;
  std::vector<int64_t> values_;  // of the expressions, for the example
  absl::flat_hash_map<std::pair<Slot, size_t>, int32_t> by_size_;
  std::vector<SizeRequirement> requirements_;
  absl::flat_hash_set<std::string> required_;  // the bytes of their terms and relations
  std::vector<std::pair<Slot, size_t>> ranks_;
};

}  // namespace tt::client
