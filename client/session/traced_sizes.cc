#include "client/session/traced_sizes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "engine/schema/sized_program.h"
#include "engine/schema/symbolic_infer.h"

namespace tt::client {
namespace {

using Relation = SizeRequirement::Relation;

// A marked number: "Size" in the upper half; below it the expression's number and a pattern, so that sums and products
// with it are no marks.
constexpr uint64_t kMark = uint64_t{0x53697a65} << 32;
constexpr uint64_t kUpper = ~uint64_t{0} << 32;
constexpr int kPatternBits = 12;
constexpr uint64_t kPattern = 0x5a5;
constexpr size_t kMaxMarks = size_t{1} << (32 - kPatternBits);

bool is_marked(int64_t number) { return (static_cast<uint64_t>(number) & kUpper) == kMark; }

bool holds(Relation relation, int64_t a, int64_t b) {
  switch (relation) {
    case Relation::kEqual: return a == b;
    case Relation::kLess: return a < b;
    case Relation::kLessEqual: return a <= b;
  }
  return false;
}

void infer_symbols(const Op& op, Args args, bool grad_enabled, Inference* inferred) {
  if (op.id != op_id::kBackward) return infer_symbolic(op, args, grad_enabled, inferred);
  infer_in_program(op, args, grad_enabled, inferred);  // gradients of the captures' sizes
  for (TensorMeta& gradient : inferred->outputs) gradient.strides = symbolic_strides(gradient.sizes);
}

}  // namespace

RequirementValues evaluate_requirement(const SizeRequirement& requirement, const ProgramTypes& types) {
  const auto value_of = [&](const SizeTerm& term) {
    const TensorMeta& meta = types.of(term.name);
    if (term.kind == SizeTerm::Kind::kOffset) return meta.offset;
    if (term.kind == SizeTerm::Kind::kIsContiguous) return int64_t{meta.is_contiguous()};
    const Sizes& numbers = term.kind == SizeTerm::Kind::kStride ? meta.strides : meta.sizes;
    check(ErrorKind::kValue, term.number < static_cast<int64_t>(numbers.size()),
          "[run_program] expected the number of dimensions of each value as traced");
    return numbers[static_cast<size_t>(term.number)];
  };
  const int64_t left = evaluate(requirement.left, value_of), right = evaluate(requirement.right, value_of);
  return {left, right, holds(requirement.relation, left, right) == requirement.expected};
}

void TracedSizes::make_symbols(TensorMeta* meta, absl::FunctionRef<bool(size_t)> is_variable) {
  const symbolic::Scope scope(*facts_);
  bool has_symbols = false;
  for (size_t dim = 0; dim < meta->sizes.size(); ++dim) {
    const int64_t size = meta->sizes[dim];
    if (size <= 1 || !is_variable(dim)) continue;
    meta->sizes[dim] = symbolic::number_of(*facts_, facts_->symbol({2, INT64_MAX}, size));
    has_symbols = true;
  }
  if (has_symbols) meta->strides = symbolic_strides(meta->sizes);
}

void TracedSizes::add_inputs(absl::Span<const TensorMeta* const> inputs,
                             absl::FunctionRef<bool(size_t, size_t)> is_static) {
  for (size_t input = 0; input < inputs.size(); ++input) {
    TensorMeta meta = *inputs[input];
    ranks_.emplace_back(input + 1, meta.sizes.size());
    make_symbols(&meta, [&](size_t dim) { return has_expressions_ && !is_static(input, dim); });
    types_.set(input + 1, std::move(meta));
  }
}

void TracedSizes::add_captured(Slot name, const TensorMeta& meta) {
  ranks_.emplace_back(name, meta.sizes.size());
  types_.set(name, meta);
}

void TracedSizes::add_input(Slot name, const TensorMeta& meta, absl::Span<const size_t> dims) {
  ranks_.emplace_back(name, meta.sizes.size());
  TensorMeta sized = meta;
  make_symbols(&sized, [&](size_t dim) { return std::find(dims.begin(), dims.end(), dim) != dims.end(); });
  types_.set(name, std::move(sized));
}

void TracedSizes::add_call(const Program& program, absl::Span<const TensorMeta* const> results) {
  const Instruction& instruction = program.instructions().back();
  const auto index = static_cast<uint32_t>(program.instructions().size() - 1);
  if ((instruction.flags & Instruction::kInto) == 0) {
    for (size_t i = 0; i < results.size(); ++i) ranks_.emplace_back(instruction.results[i], results[i]->sizes.size());
  }
  absl::Span<const SizeArgument> sizes = program.sizes();
  size_t count = 0;
  while (count < sizes.size() && sizes[sizes.size() - count - 1].instruction == index) ++count;
  sizes.remove_prefix(sizes.size() - count);
  facts_->forget();
  try {
    const symbolic::Scope scope(*facts_);
    ProgramMemory memory;
    Instruction symbolic = instruction;
    set_sizes(sizes, types_, memory, &symbolic);
    types_.add(symbolic, /*grad_enabled=*/false, infer_symbols);
  } catch (const std::exception&) {  // the sizes of these results are constants of the trace
    for (size_t i = 0; i < results.size(); ++i) types_.set(instruction.results[i], *results[i]);
  }
}

bool TracedSizes::depends(Slot name, size_t dim) {
  if (!types_.contains(name)) return false;
  const int64_t number = types_.of(name).sizes[dim];
  if (!symbolic::is_expression(number)) return false;
  return !facts_->expressions().range(symbolic::expression_of(*facts_, number)).is_constant();
}

TracedNumber TracedSizes::size_of(Slot name, const TensorMeta& meta, size_t dim, size_t instruction, Where where) {
  const int64_t size = meta.sizes[dim];
  if (!depends(name, dim)) {
    require_value({SizeTerm::Kind::kSize, static_cast<int64_t>(dim), name}, size, instruction, where);
    return {size};
  }
  const auto [at, is_new] = by_size_.try_emplace({name, dim}, static_cast<int32_t>(expressions_.size()));
  if (is_new) {
    expressions_.push_back({{SizeTerm::Kind::kSize, static_cast<int64_t>(dim), name}});
    values_.push_back(size);
  }
  return {size, at->second};
}

std::vector<SizeTerm> TracedSizes::terms_of(const TracedNumber& number) const {
  if (number.is_constant()) return {{SizeTerm::Kind::kConstant, number.value}};
  return expressions_[static_cast<size_t>(number.expression)];
}

TracedNumber TracedSizes::combine(SizeTerm::Kind kind, const TracedNumber& a, const TracedNumber& b, size_t instruction,
                                  Where where) {
  const std::vector<SizeTerm> example = {
      {SizeTerm::Kind::kConstant, a.value}, {SizeTerm::Kind::kConstant, b.value}, {kind}};
  TracedNumber result{evaluate(example, [](const SizeTerm&) { return int64_t{0}; })};
  if (a.is_constant() && b.is_constant()) return result;
  const auto is_neutral = [&](const TracedNumber& number) {
    const bool is_product = kind == SizeTerm::Kind::kMultiply;
    return number.is_constant() &&
           ((is_product && number.value == 1) || (kind == SizeTerm::Kind::kAdd && number.value == 0));
  };
  if (is_neutral(a)) return b;
  if (is_neutral(b)) return a;
  std::vector<SizeTerm> terms = terms_of(a);
  const std::vector<SizeTerm> others = terms_of(b);
  terms.insert(terms.end(), others.begin(), others.end());
  terms.push_back({kind});
  if (terms.size() > kMaxSizeTerms) {
    constant(a, instruction, where);
    constant(b, instruction, where);
    return result;
  }
  result.expression = static_cast<int32_t>(expressions_.size());
  expressions_.push_back(std::move(terms));
  values_.push_back(result.value);
  return result;
}

void TracedSizes::add_requirement(SizeRequirement requirement, Where where) {
  std::string key(1, static_cast<char>(requirement.relation));
  for (const std::vector<SizeTerm>* terms : {&requirement.left, &requirement.right}) {
    absl::StrAppend(&key, to_string(*terms), ";");
  }
  if (!required_.insert(std::move(key)).second) return;
  requirement.where = where();
  requirements_.push_back(std::move(requirement));
}

void TracedSizes::require_value(const SizeTerm& term, int64_t value, size_t instruction, Where where) {
  add_requirement(
      {.left = {term}, .right = {{SizeTerm::Kind::kConstant, value}}, .instruction = instruction, .where = {}}, where);
}

bool TracedSizes::compare(Relation relation, const TracedNumber& a, const TracedNumber& b, size_t instruction,
                          Where where) {
  const bool result = holds(relation, a.value, b.value);
  if (!a.is_constant() || !b.is_constant())
    add_requirement({terms_of(a), terms_of(b), relation, result, instruction, {}}, where);
  return result;
}

int64_t TracedSizes::constant(const TracedNumber& number, size_t instruction, Where where) {
  compare(Relation::kEqual, number, {number.value}, instruction, where);
  return number.value;
}

int64_t TracedSizes::mark(const TracedNumber& number, size_t instruction, Where where) {
  if (number.is_constant() || static_cast<size_t>(number.expression) >= kMaxMarks)
    return constant(number, instruction, where);
  return static_cast<int64_t>(kMark | static_cast<uint64_t>(number.expression) << kPatternBits | kPattern);
}

bool TracedSizes::has_marks(Args args) const {
  if (expressions_.empty()) return false;
  return std::any_of(args.begin(), args.end(), [](const Arg& arg) {
    if (arg.kind == Arg::Kind::kInt) return is_marked(arg.integer);
    return arg.kind == Arg::Kind::kInts && std::any_of(arg.ints().begin(), arg.ints().end(), is_marked);
  });
}

TracedNumber TracedSizes::number_of(int64_t number) const {
  if (!is_marked(number) || expressions_.empty()) return {number};
  const uint64_t low = static_cast<uint64_t>(number) & ~kUpper;
  const uint64_t expression = low >> kPatternBits;
  check((low & ((uint64_t{1} << kPatternBits) - 1)) == kPattern && expression < expressions_.size(),
        "[trace] a size that a trace computes was used in arithmetic that the trace cannot follow");
  return {values_[expression], static_cast<int32_t>(expression)};
}

std::vector<SizeArgument> TracedSizes::take_marks(std::vector<Arg>* args,
                                                  std::vector<std::vector<int64_t>>* lists) const {
  std::vector<SizeArgument> sizes;
  const auto take = [&](int64_t number, size_t arg, int32_t element) {
    const TracedNumber traced = number_of(number);
    if (!traced.is_constant()) {
      sizes.push_back({0, static_cast<uint32_t>(arg), element, expressions_[static_cast<size_t>(traced.expression)]});
    }
    return traced.value;
  };
  lists->reserve(args->size());
  for (size_t i = 0; i < args->size(); ++i) {
    Arg& arg = (*args)[i];
    if (arg.kind == Arg::Kind::kInt) {
      arg.integer = take(arg.integer, i, SizeArgument::kNumber);
    } else if (arg.kind == Arg::Kind::kInts) {
      std::vector<int64_t>& list = lists->emplace_back(arg.ints().begin(), arg.ints().end());
      for (size_t j = 0; j < list.size(); ++j) list[j] = take(list[j], i, static_cast<int32_t>(j));
      arg.integers = list.data();
    }
  }
  return sizes;
}

std::vector<SizeRequirement> TracedSizes::take_requirements(absl::FunctionRef<Slot(Slot)> name_of) {
  for (SizeRequirement& requirement : requirements_) {
    for (std::vector<SizeTerm>* terms : {&requirement.left, &requirement.right}) {
      for (SizeTerm& term : *terms) {
        if (term.describes_value()) term.name = name_of(term.name);
      }
    }
  }
  for (auto& [name, rank] : ranks_) name = name_of(name);
  return std::move(requirements_);
}

}  // namespace tt::client
