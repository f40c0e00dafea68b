#include "engine/symbolic/facts.h"

#include <algorithm>
#include <stdexcept>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace symbolic {
namespace {

constexpr size_t kMaxPairs = 16;   // facts of which pairs are tried
constexpr size_t kMaxFacts = 128;  // the last ones are tried

thread_local Facts* current = nullptr;

Facts& current_facts() {
  if (current == nullptr) throw std::logic_error("a symbolic size is used outside of its trace");
  return *current;
}

}  // namespace

// ---- Facts

Expression Facts::symbol(Range range, std::optional<int64_t> example) {
  examples_.push_back(example);
  ranges_.push_back(range);
  return expressions_.symbol(range);
}

std::optional<int64_t> Facts::example_of(Expression e) const {
  struct NoExample {};
  try {
    return expressions_.evaluate(e, [&](int32_t symbol) {
      const auto& example = examples_[static_cast<size_t>(symbol)];
      if (!example) throw NoExample();
      return *example;
    });
  } catch (const NoExample&) {
    return std::nullopt;
  }
}

Expression Facts::simplified(Expression e) {
  for (const auto& [symbol, value] : substitutions_) e = expressions_.substitute(e, symbol, value);
  return e;
}

std::optional<bool> Facts::known_not_negative(Expression e) {
  const Range range = expressions_.range(e);
  if (range.low >= 0) return true;
  if (range.high < 0) return false;
  const auto follows = [&](Expression rest) { return expressions_.range(rest).low >= 0; };
  const Expression opposite = expressions_.subtract(expressions_.constant(-1), e);  // not negative if `e` is negative
  const size_t first = not_negative_.size() - std::min(not_negative_.size(), kMaxFacts);
  for (size_t i = first; i < not_negative_.size(); ++i) {
    const Expression fact = not_negative_[i];
    const Expression rest = expressions_.subtract(e, fact), other = expressions_.subtract(opposite, fact);
    if (follows(rest)) return true;
    if (follows(other)) return false;
    if (not_negative_.size() > kMaxPairs) continue;
    for (const Expression second : not_negative_) {
      if (follows(expressions_.subtract(rest, second))) return true;
      if (follows(expressions_.subtract(other, second))) return false;
    }
  }
  return std::nullopt;
}

std::optional<bool> Facts::known_zero(Expression e) {
  if (const auto constant = expressions_.constant_of(e)) return *constant == 0;
  const Range range = expressions_.range(e);
  if (!range.contains(0)) return false;
  if (range.low == 0 && range.high == 0) return true;
  const Expression zero = expressions_.constant(0), negative = expressions_.subtract(zero, e);
  if (not_zero_.contains(e) || not_zero_.contains(negative)) return false;
  const Expression one = expressions_.constant(1);
  if (known_not_negative(expressions_.subtract(e, one)) == true) return false;
  if (known_not_negative(expressions_.subtract(negative, one)) == true) return false;
  if (known_not_negative(e) == true && known_not_negative(negative) == true) return true;
  return std::nullopt;
}

std::optional<bool> Facts::known(Expression e, Relation relation) {
  e = simplified(e);
  try {
    return relation == Relation::kZero ? known_zero(e) : known_not_negative(e);
  } catch (const std::overflow_error&) {
    return std::nullopt;
  }
}

void Facts::learn_not_negative(Expression e) {
  const auto solution = expressions_.solve(e);
  const auto bound = solution ? expressions_.constant_of(solution->value) : std::nullopt;
  if (!bound) {
    not_negative_.push_back(e);
    return;
  }
  // The expression is the symbol minus the bound, or the bound minus the symbol.
  const Expression next = expressions_.add(solution->value, expressions_.constant(1));
  const bool grows = expressions_.constant_of(expressions_.substitute(e, solution->symbol, next)) == 1;
  expressions_.narrow(solution->symbol, grows ? Range{*bound, INT64_MAX} : Range{INT64_MIN, *bound});
}

void Facts::learn_zero(Expression e) {
  const auto solution = expressions_.solve(e);
  if (!solution) {
    learn_not_negative(e);
    learn_not_negative(expressions_.subtract(expressions_.constant(0), e));
    return;
  }
  const Range range = expressions_.range_of_symbol(solution->symbol);
  for (auto& [symbol, value] : substitutions_)
    value = expressions_.substitute(value, solution->symbol, solution->value);
  substitutions_.emplace_back(solution->symbol, solution->value);
  for (Expression& fact : not_negative_) fact = simplified(fact);
  absl::flat_hash_set<Expression> not_zero;
  for (const Expression fact : not_zero_) not_zero.insert(simplified(fact));
  not_zero_ = std::move(not_zero);
  const auto learn_bound = [&](Expression distance) {
    if (known_not_negative(distance) != true) learn_not_negative(distance);
  };
  const auto bound = [&](int64_t end) { return expressions_.constant(end); };
  if (range.low != INT64_MIN) learn_bound(expressions_.subtract(solution->value, bound(range.low)));
  if (range.high != INT64_MAX) learn_bound(expressions_.subtract(bound(range.high), solution->value));
}

void Facts::learn(Expression e, Relation relation, bool outcome) {
  const Expression one = expressions_.constant(1);
  if (relation == Relation::kNotNegative) {
    learn_not_negative(outcome ? e : expressions_.subtract(expressions_.subtract(expressions_.constant(0), e), one));
  } else if (outcome) {
    learn_zero(e);
  } else {
    not_zero_.insert(e);
    const Expression negative = expressions_.subtract(expressions_.constant(0), e);
    if (known_not_negative(e) == true) learn_not_negative(expressions_.subtract(e, one));
    if (known_not_negative(negative) == true) learn_not_negative(expressions_.subtract(negative, one));
  }
}

bool Facts::decide(Expression e, Relation relation) {
  if (const auto outcome = known(e, relation)) return *outcome;
  e = simplified(e);
  const auto example = example_of(e);
  if (!example) throw Undecided(absl::StrCat(to_string(e), relation == Relation::kZero ? " == 0" : " >= 0"));
  const bool outcome = relation == Relation::kZero ? *example == 0 : *example >= 0;
  guards_.push_back({e, relation, outcome, where_ ? where_() : ""});
  learn(e, relation, outcome);
  return outcome;
}

int64_t Facts::specialise(Expression e) {
  e = simplified(e);
  if (const auto constant = expressions_.constant_of(e)) return *constant;
  const Range range = expressions_.range(e);
  if (range.is_constant()) return range.low;
  const auto example = example_of(e);
  if (!example) throw Undecided(to_string(e));
  decide(expressions_.subtract(e, expressions_.constant(*example)), Relation::kZero);
  return *example;
}

bool Facts::assume(Expression e, Relation relation, bool outcome) {
  if (const auto found = known(e, relation)) return *found == outcome;
  learn(simplified(e), relation, outcome);
  return true;
}

void Facts::forget() {
  for (size_t i = 0; i < ranges_.size(); ++i) expressions_.set_range(static_cast<int32_t>(i), ranges_[i]);
  substitutions_.clear();
  not_negative_.clear();
  not_zero_.clear();
  guards_.clear();
}

std::string Facts::to_string(Expression e) const { return expressions_.to_string(e, &Facts::name_of_symbol); }

// ---- Numbers

Scope::Scope(Facts& facts) : outer_(std::exchange(current, &facts)) {}
Scope::~Scope() { current = outer_; }

int64_t number_of(const Facts& facts, Expression e) {
  const auto constant = facts.expressions().constant_of(e);
  if (!constant) return kFirstNumber + e;
  if (is_expression(*constant)) throw std::overflow_error("a number of a size is below those that a size can have");
  return *constant;
}

Expression expression_of(Facts& facts, int64_t number) {
  if (!is_expression(number)) return facts.expressions().constant(number);
  const int64_t e = number - kFirstNumber;
  if (static_cast<size_t>(e) >= facts.expressions().size()) throw std::invalid_argument("a size of another trace");
  return static_cast<Expression>(e);
}

namespace {

using Combine = Expression (Expressions::*)(Expression, Expression);

template <Combine combine>
int64_t combined(int64_t a, int64_t b) {
  Facts& facts = current_facts();
  return number_of(facts,
                   facts.simplified((facts.expressions().*combine)(expression_of(facts, a), expression_of(facts, b))));
}

bool are_integers(int64_t a, int64_t b) { return !is_expression(a) && !is_expression(b); }

// The result for integers is that of a builtin, which returns whether it is beyond 64 bits.
template <Combine combine, typename Builtin>
int64_t arithmetic(int64_t a, int64_t b, Builtin overflows) {
  if (!are_integers(a, b)) return combined<combine>(a, b);
  int64_t result = 0;
  if (overflows(a, b, &result)) throw std::overflow_error("a size is beyond 64 bits");
  return result;
}

void check_divisor(int64_t b) {
  if (is_equal(b, 0)) throw std::domain_error("integer division or modulo by zero");
}

// The difference of two numbers, for comparisons. If it is beyond 64 bits, its sign.
Expression difference(Facts& facts, int64_t a, int64_t b) {
  const Expression x = expression_of(facts, a), y = expression_of(facts, b);
  Expressions& table = facts.expressions();
  try {
    return table.subtract(x, y);
  } catch (const std::overflow_error&) {
    const Range of_a = table.range(facts.simplified(x)), of_b = table.range(facts.simplified(y));
    if (of_a.low > of_b.high) return table.constant(1);
    if (of_a.high < of_b.low) return table.constant(-1);
    throw;
  }
}

}  // namespace

int64_t add(int64_t a, int64_t b) {
  return arithmetic<&Expressions::add>(a, b, [](auto... v) { return __builtin_add_overflow(v...); });
}

int64_t subtract(int64_t a, int64_t b) {
  return arithmetic<&Expressions::subtract>(a, b, [](auto... v) { return __builtin_sub_overflow(v...); });
}

int64_t multiply(int64_t a, int64_t b) {
  return arithmetic<&Expressions::multiply>(a, b, [](auto... v) { return __builtin_mul_overflow(v...); });
}

int64_t floor_divide(int64_t a, int64_t b) {
  check_divisor(b);
  return are_integers(a, b) ? floor_divided(a, b) : combined<&Expressions::floor_divide>(a, b);
}

int64_t modulo(int64_t a, int64_t b) {
  check_divisor(b);
  return are_integers(a, b) ? a - floor_divided(a, b) * b : combined<&Expressions::modulo>(a, b);
}

int64_t minimum(int64_t a, int64_t b) {
  return are_integers(a, b) ? std::min(a, b) : combined<&Expressions::minimum>(a, b);
}

int64_t maximum(int64_t a, int64_t b) {
  return are_integers(a, b) ? std::max(a, b) : combined<&Expressions::maximum>(a, b);
}

bool is_equal(int64_t a, int64_t b) {
  if (a == b || are_integers(a, b)) return a == b;
  Facts& facts = current_facts();
  return facts.decide(difference(facts, a, b), Relation::kZero);
}

bool is_known_equal(int64_t a, int64_t b) {
  if (a == b || are_integers(a, b)) return a == b;
  Facts& facts = current_facts();
  return facts.known(difference(facts, a, b), Relation::kZero) == true;
}

bool is_less(int64_t a, int64_t b) {
  if (are_integers(a, b)) return a < b;
  Facts& facts = current_facts();
  return !facts.decide(difference(facts, a, b), Relation::kNotNegative);
}

int64_t hint_of(int64_t number) {
  if (!is_expression(number)) return number;
  Facts& facts = current_facts();
  const Expression e = expression_of(facts, number);
  constexpr int64_t kUnlike = 1 << 20;
  facts.set_hinted();
  return facts.example_of(e).value_or(kUnlike + e);
}

bool is_example_within(int64_t number, int64_t limit) {
  if (!is_expression(number)) return number <= limit;
  Facts& facts = current_facts();
  return facts.example_of(expression_of(facts, number)).value_or(0) <= limit;
}

int64_t specialise(int64_t number) {
  if (!is_expression(number)) return number;
  Facts& facts = current_facts();
  return facts.specialise(expression_of(facts, number));
}

std::string to_text(int64_t number) {
  if (!is_expression(number)) return absl::StrCat(number);
  Facts& facts = current_facts();
  return facts.to_string(expression_of(facts, number));
}

}  // namespace symbolic
