// Symbolic rules equal the rules of integers: random calls whose sizes are symbols, at the sizes of the call and at
// others that fulfil the guards.
//
// TT_FUZZ_CALLS=<count> sets the number of calls.
#include "engine/schema/symbolic_infer.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "engine/schema/default_float.h"
#include "engine/schema/error.h"
#include "tests/fuzz/operator_arguments.h"
#include "tests/fuzz/random_bytes.h"

namespace tt::fuzz {
namespace {

using symbolic::Expression;
using symbolic::Facts;

// A call in which sizes are symbols: all dimensions, or those of one size are one symbol.
class SymbolicCall {
 public:
  SymbolicCall(const Op& op, Args args, bool shares_symbols, std::mt19937_64* random)
      : shares_symbols_(shares_symbols), random_(*random) {
    for (size_t i = 0; i < args.size(); ++i) {
      const bool is_enumerator = op.params[i].type == ParamType::kDType || op.params[i].type == ParamType::kDevice;
      args_.push_back(is_enumerator ? args[i] : symbolic(args[i]));
    }
  }
  SymbolicCall(const SymbolicCall&) = delete;
  SymbolicCall& operator=(const SymbolicCall&) = delete;

  Facts& facts() { return facts_; }
  Args args() const { return args_; }
  size_t symbols() const { return symbols_.size(); }

  // Values of the symbols that fulfil the guards, if some are found; the example's with `is_example`.
  bool draw(bool is_example) {
    values_.clear();
    for (const auto& [symbol, example] : symbols_) {
      const int64_t other = random_() % 4 == 0 ? example : 2 + static_cast<int64_t>(random_() % 24);
      values_.push_back(is_example ? example : other);
    }
    if (is_example) return true;
    // Symbols that are equal to expressions of others.
    std::vector<int64_t> derived;
    for (const auto& [symbol, example] : symbols_) {
      const auto value = evaluated(facts_.simplified(symbol));
      if (!value || *value < 2) return false;
      derived.push_back(*value);
    }
    values_ = derived;
    return fulfils_guards();
  }

  std::optional<int64_t> evaluated(Expression e) const {
    try {
      return facts_.expressions().evaluate(e, [&](int32_t symbol) { return values_[static_cast<size_t>(symbol)]; });
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }
  int64_t evaluated_number(int64_t number) const {
    if (!symbolic::is_expression(number)) return number;
    return evaluated(symbolic::expression_of(facts_, number)).value_or(INT64_MIN);
  }

  // The arguments for the drawn values.
  std::vector<Arg> numeric(std::deque<TensorMeta>* metas, std::deque<std::vector<const TensorMeta*>>* lists,
                           std::deque<Sizes>* ints) const {
    const auto meta = [&](const TensorMeta& symbolic) {
      TensorMeta& made = metas->emplace_back(symbolic);
      for (int64_t& size : made.sizes) size = evaluated_number(size);
      for (int64_t& stride : made.strides) stride = evaluated_number(stride);
      return &made;
    };
    std::vector<Arg> found;
    for (const Arg& arg : args_) {
      if (arg.kind == Arg::Kind::kTensor) {
        found.emplace_back(meta(*arg.tensor));
      } else if (arg.kind == Arg::Kind::kTensors) {
        auto& list = lists->emplace_back();
        for (const TensorMeta* t : arg.list()) list.push_back(t ? meta(*t) : nullptr);
        found.emplace_back(absl::Span<const TensorMeta* const>(list));
      } else if (arg.kind == Arg::Kind::kInts) {
        Sizes& list = ints->emplace_back(arg.ints().begin(), arg.ints().end());
        for (int64_t& n : list) n = evaluated_number(n);
        found.emplace_back(SizesView(list));
      } else {
        found.push_back(arg);
        if (arg.kind == Arg::Kind::kInt) found.back().integer = evaluated_number(arg.integer);
      }
    }
    return found;
  }

 private:
  int64_t number_of(int64_t size) {
    if (size < 2 || size > (int64_t{1} << 20)) return size;
    if (shares_symbols_) {
      const auto known = by_size_.find(size);
      if (known != by_size_.end()) return known->second;
    }
    const Expression made = facts_.symbol({2, INT64_MAX}, size);
    symbols_.emplace_back(made, size);
    return by_size_[size] = symbolic::number_of(facts_, made);
  }

  const TensorMeta* symbolic(const TensorMeta& meta) {
    TensorMeta& made = metas_.emplace_back(meta);
    if (meta.strides != contiguous_strides(meta.sizes) || meta.offset != 0) return &made;
    for (int64_t& size : made.sizes) size = number_of(size);
    const symbolic::Scope scope(facts_);
    made.strides = symbolic_strides(made.sizes);
    return &made;
  }

  Arg symbolic(const Arg& arg) {
    if (arg.kind == Arg::Kind::kTensor) return Arg(symbolic(*arg.tensor));
    if (arg.kind == Arg::Kind::kTensors) {
      auto& list = lists_.emplace_back();
      for (const TensorMeta* t : arg.list()) list.push_back(t ? symbolic(*t) : nullptr);
      return Arg(absl::Span<const TensorMeta* const>(list));
    }
    // An integer that is one of the sizes may be computed from it.
    const auto maybe = [&](int64_t n) {
      const auto known = by_size_.find(n);
      return known == by_size_.end() || random_() % 2 == 0 ? n : known->second;
    };
    Arg made = arg;
    if (arg.kind == Arg::Kind::kInt && arg.size == 0) made.integer = maybe(arg.integer);
    if (arg.kind == Arg::Kind::kInts) {
      Sizes& list = ints_.emplace_back();
      for (const int64_t n : arg.ints()) list.push_back(maybe(n));
      made = Arg(SizesView(list));
    }
    return made;
  }

  bool fulfils_guards() const {
    for (const symbolic::Guard& guard : facts_.guards()) {
      const auto value = evaluated(guard.expression);
      if (!value) return false;
      const bool holds = guard.relation == symbolic::Relation::kZero ? *value == 0 : *value >= 0;
      if (holds != guard.expected) return false;
    }
    return true;
  }

  const bool shares_symbols_;
  std::mt19937_64& random_;
  mutable Facts facts_;
  std::vector<std::pair<Expression, int64_t>> symbols_;  // and their examples
  std::map<int64_t, int64_t> by_size_;                   // numbers
  std::vector<int64_t> values_;
  std::vector<Arg> args_;
  std::deque<TensorMeta> metas_;
  std::deque<std::vector<const TensorMeta*>> lists_;
  std::deque<Sizes> ints_;
};

struct Counts {
  size_t calls = 0, compared = 0, specialised = 0;
};

std::string text_of(const TensorMeta& meta) {
  return absl::StrCat(describe(meta), " strides ", to_string(SizesView(meta.strides)), " offset ", meta.offset);
}

bool is_beyond_64_bits(std::string_view message) {
  return message.find("64 bits") != message.npos || message.find("overflow") != message.npos;
}

// Compares one call with its symbolic form; returns a fault.
std::string compare(const Op& op, const OperatorArguments& call, uint64_t seed, Counts* counts) {
  Inference plain;
  try {
    op.check_args(call.args());
    infer(op, call.args(), true, &plain);
  } catch (const Error&) {
    return "";
  }
  std::mt19937_64 random(seed);
  SymbolicCall symbolic(op, call.args(), random() % 2 == 0, &random);
  if (symbolic.symbols() == 0) return "";
  const symbolic::Scope scope(symbolic.facts());
  Inference inferred;
  try {
    infer_symbolic(op, symbolic.args(), true, &inferred);
  } catch (const std::exception& error) {
    if (is_beyond_64_bits(error.what())) return "";
    return absl::StrCat("the symbolic rules raise: ", error.what());
  }
  ++counts->calls;
  counts->specialised += std::ranges::any_of(symbolic.facts().guards(), [&](const symbolic::Guard& guard) {
    return guard.relation == symbolic::Relation::kZero && guard.expected;
  });
  for (int i = 0; i < 6; ++i) {
    if (!symbolic.draw(i == 0)) continue;
    std::deque<TensorMeta> metas;
    std::deque<std::vector<const TensorMeta*>> lists;
    std::deque<Sizes> ints;
    const std::vector<Arg> args = symbolic.numeric(&metas, &lists, &ints);
    Inference expected;
    try {
      infer(op, args, true, &expected);
    } catch (const Error& error) {
      if (is_beyond_64_bits(error.message())) continue;  // guards do not include this
      std::string sizes;
      for (const TensorMeta& meta : metas) absl::StrAppend(&sizes, " ", describe(meta));
      return absl::StrCat("the guards permit sizes that the rules reject:", sizes, ": ", error.message());
    }
    if (expected.outputs.size() != inferred.outputs.size() || expected.alias != inferred.alias)
      return absl::StrCat("expected ", expected.outputs.size(), " results, got ", inferred.outputs.size());
    for (size_t k = 0; k < expected.outputs.size(); ++k) {
      TensorMeta made = inferred.outputs[k];
      bool fits = true;
      const auto evaluate = [&](int64_t& number) {
        number = symbolic.evaluated_number(number);
        fits = fits && number != INT64_MIN;  // beyond 64 bits
      };
      for (int64_t& size : made.sizes) evaluate(size);
      for (int64_t& stride : made.strides) evaluate(stride);
      evaluate(made.offset);
      if (!fits) continue;
      if (text_of(made) != text_of(expected.outputs[k]) || made.requires_grad != expected.outputs[k].requires_grad) {
        std::string sizes;
        for (const TensorMeta& meta : metas) absl::StrAppend(&sizes, " ", describe(meta));
        return absl::StrCat("result ", k, " is ", text_of(made), " for", sizes, ", expected ",
                            text_of(expected.outputs[k]));
      }
    }
    ++counts->compared;
  }
  return "";
}

TEST(SymbolicRulesTest, EqualTheRulesOfIntegers) {
  const uint64_t calls = count_from("TT_FUZZ_CALLS", 100'000);
  Counts all;
  std::map<std::string, Counts> by_op;
  int faults = 0;
  for (uint64_t seed = 0; seed < calls && faults < 20; ++seed) {
    const RandomBytes data(seed);
    ByteReader bytes(data.data(), data.size());
    const Op& op = draw_op(bytes);
    if (op.is_dynamic) continue;
    const OperatorArguments call(op, bytes, TensorLimits{.extreme = false});
    const std::string fault = compare(op, call, seed, &by_op[std::string(op.name)]);
    EXPECT_EQ(fault, "") << "seed " << seed << ": " << call.to_string();
    faults += fault.empty() ? 0 : 1;
  }
  size_t without = 0;
  for (const auto& [name, counts] : by_op) {
    all.calls += counts.calls;
    all.compared += counts.compared;
    all.specialised += counts.specialised;
    without += counts.compared == 0 ? 1 : 0;
  }
  RecordProperty("calls", static_cast<int>(all.calls));
  std::printf("%zu calls with symbols, %zu comparisons, %zu with an assumed equality, %zu of %zu operators without\n",
              all.calls, all.compared, all.specialised, without, by_op.size());
  EXPECT_GT(all.compared, all.calls);
}

}  // namespace
}  // namespace tt::fuzz
