#include "engine/symbolic/expressions.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace symbolic {
namespace {

// Limits of the forms in which range() sees a sum, which would grow exponentially.
constexpr int kMaxDepth = 3;
constexpr size_t kMaxTerms = 8;
constexpr size_t kMostProducts = 4096;  // of terms in one product of sums, which need memory
constexpr size_t kMaxFactors = 5;       // of a product whose range is computed in a second form
constexpr int kMaxQuotients = 64;       // terms of an exact quotient

int64_t checked(bool overflows, int64_t result) {
  if (overflows) throw std::overflow_error("a size is beyond 64 bits");
  return result;
}

int64_t sum_of(int64_t a, int64_t b) {
  int64_t result = 0;
  const bool overflows = __builtin_add_overflow(a, b, &result);
  return checked(overflows, result);
}

int64_t product_of(int64_t a, int64_t b) {
  int64_t result = 0;
  const bool overflows = __builtin_mul_overflow(a, b, &result);
  return checked(overflows, result);
}

// A bound while ranges are computed: an integer of about 64 bits, or beyond all of them.
using Bound = __int128;
constexpr Bound kInfinite = Bound{1} << 100;

struct Bounds {
  Bound low = -kInfinite, high = kInfinite;
};

bool is_infinite(Bound b) { return b <= -kInfinite || b >= kInfinite; }

Bound clamped(Bound b) {
  constexpr Bound kLargest = Bound{1} << 63;
  return b > kLargest ? kInfinite : b < -kLargest ? -kInfinite : b;
}

Bound product(Bound a, Bound b) {
  if (a == 0 || b == 0) return 0;
  if (is_infinite(a) || is_infinite(b)) return (a < 0) == (b < 0) ? kInfinite : -kInfinite;
  return clamped(a * b);
}

Bound quotient(Bound a, Bound b) {  // rounded down; b > 0
  if (is_infinite(a)) return a;
  if (is_infinite(b)) return a < 0 ? -1 : 0;
  return a / b - (a % b < 0 ? 1 : 0);
}

// A sum with a number without a bound has none.
Bounds operator+(const Bounds& a, const Bounds& b) {
  const bool has_low = a.low > -kInfinite && b.low > -kInfinite, has_high = a.high < kInfinite && b.high < kInfinite;
  return {has_low ? clamped(a.low + b.low) : -kInfinite, has_high ? clamped(a.high + b.high) : kInfinite};
}

Bounds operator*(const Bounds& a, const Bounds& b) {
  const std::array<Bound, 4> ends = {product(a.low, b.low), product(a.low, b.high), product(a.high, b.low),
                                     product(a.high, b.high)};
  return {*absl::c_min_element(ends), *absl::c_max_element(ends)};
}

Bounds bounds_of(const Range& r) {
  return {r.low == INT64_MIN ? -kInfinite : Bound{r.low}, r.high == INT64_MAX ? kInfinite : Bound{r.high}};
}

Range range_of(const Bounds& b) {
  return {b.low < INT64_MIN   ? INT64_MIN
          : b.low > INT64_MAX ? INT64_MAX
                              : static_cast<int64_t>(b.low),
          b.high > INT64_MAX   ? INT64_MAX
          : b.high < INT64_MIN ? INT64_MIN
                               : static_cast<int64_t>(b.high)};
}

Range common(const Range& a, const Range& b) { return {std::max(a.low, b.low), std::min(a.high, b.high)}; }

}  // namespace

int64_t floor_divided(int64_t a, int64_t b) {
  if (b == -1) return product_of(a, -1);  // of INT64_MIN it has no result, and the processor traps
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// ---- Normal form

Expression Expressions::number_of(Sum sum) {
  const auto [at, is_new] = sum_numbers_.try_emplace(std::move(sum), static_cast<Expression>(sums_.size()));
  if (is_new) sums_.push_back(at->first);
  return at->second;
}

Expression Expressions::of_atom(Atom made) {
  const auto [at, is_new] = atom_numbers_.try_emplace(std::move(made), static_cast<int32_t>(atoms_.size()));
  if (is_new) atoms_.push_back(at->first);
  return number_of({{{at->second}, 1}});
}

Expression Expressions::constant(int64_t value) { return number_of(value == 0 ? Sum{} : Sum{{{}, value}}); }

Expression Expressions::symbol(Range range) {
  symbol_ranges_.push_back(range);
  return of_atom({Atom::Kind::kSymbol, static_cast<int32_t>(symbol_ranges_.size() - 1), {}});
}

std::optional<int64_t> Expressions::constant_of(Expression e) const {
  const Sum& s = sum(e);
  if (s.empty()) return 0;
  if (s.size() == 1 && s[0].factors.empty()) return s[0].coefficient;
  return std::nullopt;
}

std::optional<int32_t> Expressions::symbol_of(Expression e) const {
  const Sum& s = sum(e);
  if (s.size() != 1 || s[0].coefficient != 1 || s[0].factors.size() != 1) return std::nullopt;
  const Atom& a = atom(s[0].factors[0]);
  return a.kind == Atom::Kind::kSymbol ? std::optional(a.symbol) : std::nullopt;
}

Expression Expressions::combined(Expression a, Expression b, int64_t factor_of_b) {
  const Sum &x = sum(a), &y = sum(b);
  Sum result;
  size_t i = 0, j = 0;
  while (i < x.size() || j < y.size()) {
    if (j == y.size() || (i < x.size() && x[i].factors < y[j].factors)) {
      result.push_back(x[i++]);
    } else if (i == x.size() || y[j].factors < x[i].factors) {
      result.push_back({y[j].factors, product_of(y[j].coefficient, factor_of_b)});
      ++j;
    } else {
      const int64_t coefficient = sum_of(x[i].coefficient, product_of(y[j].coefficient, factor_of_b));
      if (coefficient != 0) result.push_back({x[i].factors, coefficient});
      ++i;
      ++j;
    }
  }
  return number_of(std::move(result));
}

Expression Expressions::scaled(Expression e, int64_t factor) {
  if (factor == 0) return constant(0);
  Sum result = sum(e);
  for (Term& term : result) term.coefficient = product_of(term.coefficient, factor);
  return number_of(std::move(result));
}

Expression Expressions::multiply(Expression a, Expression b) {
  if (sum(a).size() * sum(b).size() > kMostProducts) throw std::overflow_error("a product of sums with too many terms");
  std::map<Factors, int64_t> terms;
  for (const Term& x : sum(a)) {
    for (const Term& y : sum(b)) {
      Factors factors;
      std::merge(x.factors.begin(), x.factors.end(), y.factors.begin(), y.factors.end(), std::back_inserter(factors));
      int64_t& coefficient = terms[factors];
      coefficient = sum_of(coefficient, product_of(x.coefficient, y.coefficient));
    }
  }
  Sum result;
  for (const auto& [factors, coefficient] : terms) {
    if (coefficient != 0) result.push_back({factors, coefficient});
  }
  return number_of(std::move(result));
}

Expression Expressions::without_constant(Expression e) {
  const Sum& s = sum(e);
  if (s.empty() || !s[0].factors.empty()) return e;
  return number_of(Sum(s.begin() + 1, s.end()));
}

std::optional<Expression> Expressions::exact_quotient(Expression a, Expression b) {
  const auto leading = [this](Expression e) {  // by degree, so that it leads products, too
    return *absl::c_max_element(sum(e), [](const Term& x, const Term& y) {
      return std::pair(x.factors.size(), x.factors) < std::pair(y.factors.size(), y.factors);
    });
  };
  const Term lead = leading(b);
  Expression quotient = constant(0), left = a;
  for (int i = 0; i < kMaxQuotients; ++i) {
    if (sum(left).empty()) return quotient;
    const Term term = leading(left);
    if (term.coefficient % lead.coefficient != 0 ||
        !std::includes(term.factors.begin(), term.factors.end(), lead.factors.begin(), lead.factors.end())) {
      return std::nullopt;
    }
    Factors factors;
    std::set_difference(term.factors.begin(), term.factors.end(), lead.factors.begin(), lead.factors.end(),
                        std::back_inserter(factors));
    const Expression part = number_of({{factors, term.coefficient / lead.coefficient}});
    quotient = add(quotient, part);
    left = subtract(left, multiply(part, b));
  }
  return std::nullopt;
}

// The quotient by a positive constant.
Expression Expressions::divided_by(Expression e, int64_t divisor) {
  Sum whole, rest;
  int64_t shared = divisor;  // of the factors of `rest`, and the divisor
  for (const Term& term : sum(e)) {
    const int64_t quotient = floor_divided(term.coefficient, divisor);
    const int64_t left = term.coefficient - quotient * divisor;
    if (quotient != 0) whole.push_back({term.factors, quotient});
    if (left == 0) continue;
    rest.push_back({term.factors, left});
    if (!term.factors.empty()) shared = std::gcd(shared, left);
  }
  const Expression outside = number_of(std::move(whole));
  if (rest.empty() || (rest.size() == 1 && rest[0].factors.empty())) return outside;
  for (Term& term : rest) term.coefficient /= shared;
  if (rest[0].coefficient == 0) rest.erase(rest.begin());  // the constant
  divisor /= shared;
  const Expression inside = number_of(std::move(rest));
  if (divisor == 1) return add(outside, inside);
  const Range range = this->range(inside);
  if (range.low != INT64_MIN && range.high != INT64_MAX) {
    const int64_t low = floor_divided(range.low, divisor);
    if (low == floor_divided(range.high, divisor)) return add(outside, constant(low));
  }
  const Sum& s = sum(inside);
  const bool has_constant = s[0].factors.empty();
  const Term& last = s.back();
  if (s.size() == (has_constant ? 2 : 1) && last.coefficient == 1 && last.factors.size() == 1) {
    const Atom& inner = atom(last.factors[0]);
    const auto by = inner.kind == Atom::Kind::kFloorDivide ? constant_of(inner.operands[1]) : std::nullopt;
    if (by && *by > 0) {  // (x // a + c) // b == (x + a * c) // (a * b)
      const int64_t offset = product_of(*by, has_constant ? s[0].coefficient : 0), both = product_of(*by, divisor);
      const Expression numerator = inner.operands[0];
      return add(outside, divided_by(add(numerator, constant(offset)), both));
    }
  }
  return add(outside, of_atom({Atom::Kind::kFloorDivide, 0, {inside, constant(divisor)}}));
}

Expression Expressions::floor_divide(Expression a, Expression b) {
  if (const auto divisor = constant_of(b)) {
    if (*divisor == 0) throw std::domain_error("integer division or modulo by zero");
    return *divisor > 0 ? divided_by(a, *divisor) : divided_by(scaled(a, -1), product_of(*divisor, -1));
  }
  if (const auto exact = exact_quotient(a, b)) return *exact;
  if (range(a).low >= 0 && range(subtract(b, a)).low >= 1) return constant(0);
  if (sum(b).size() == 1) {
    const Term by = sum(b)[0];
    Sum whole, rest;
    Factors shared = by.factors;  // those that all terms have
    for (const Term& term : sum(a)) {
      const bool divides =
          term.coefficient % by.coefficient == 0 &&
          std::includes(term.factors.begin(), term.factors.end(), by.factors.begin(), by.factors.end());
      (divides ? whole : rest).push_back(term);
      Factors both;
      std::set_intersection(shared.begin(), shared.end(), term.factors.begin(), term.factors.end(),
                            std::back_inserter(both));
      shared = std::move(both);
    }
    if (!whole.empty()) {
      const Expression quotient = *exact_quotient(number_of(std::move(whole)), b);
      return add(quotient, floor_divide(number_of(std::move(rest)), b));
    }
    for (const int32_t factor : shared) {
      if (range(number_of({{{factor}, 1}})).low < 1) continue;
      const Expression by_factor = number_of({{{factor}, 1}});
      return floor_divide(*exact_quotient(a, by_factor), *exact_quotient(b, by_factor));
    }
  }
  return of_atom({Atom::Kind::kFloorDivide, 0, {a, b}});
}

Expression Expressions::modulo(Expression a, Expression b) { return subtract(a, multiply(b, floor_divide(a, b))); }

Expression Expressions::minimum(Expression a, Expression b) {
  if (constant_of(b) == INT64_MAX) return a;  // the largest number that there is
  if (constant_of(a) == INT64_MAX) return b;
  absl::InlinedVector<Expression, 2> operands;
  for (const Expression e : {a, b}) {
    const Expression varying = without_constant(e);
    const Sum& s = sum(varying);
    const bool is_atom = s.size() == 1 && s[0].coefficient == 1 && s[0].factors.size() == 1;
    if (!is_atom || atom(s[0].factors[0]).kind != Atom::Kind::kMinimum) {
      operands.push_back(e);
      continue;
    }
    const auto inner = atom(s[0].factors[0]).operands;
    const Expression offset = subtract(e, varying);
    for (const Expression operand : inner) operands.push_back(add(operand, offset));
  }
  return lowest(std::move(operands));
}

Expression Expressions::lowest(absl::InlinedVector<Expression, 2> operands) {
  const auto is_never_below = [&](Expression x, Expression y) {
    try {
      return range(subtract(x, y)).low >= 0;
    } catch (const std::overflow_error&) {
      return range(x).low >= range(y).high;
    }
  };
  for (size_t i = 0; i < operands.size();) {
    bool is_lowest = true;
    for (size_t j = 0; j < operands.size() && is_lowest; ++j) {
      is_lowest = j == i || !is_never_below(operands[i], operands[j]);
    }
    if (is_lowest || operands.size() == 1) {
      ++i;
    } else {
      operands.erase(operands.begin() + static_cast<int64_t>(i));
    }
  }
  if (operands.size() == 1) return operands[0];
  const auto order = [&](Expression e) { return std::pair(constant_of(e).has_value(), without_constant(e)); };
  absl::c_sort(operands, [&](Expression x, Expression y) { return order(x) < order(y); });
  // The first operand has no constant, and the factors of all have no common divisor.
  const Expression offset = subtract(operands[0], without_constant(operands[0]));
  int64_t shared = 0;
  for (Expression& e : operands) {
    e = subtract(e, offset);
    for (const Term& term : sum(e)) shared = std::gcd(shared, term.coefficient);
  }
  if (shared > 1) {
    for (Expression& e : operands) {
      Sum divided = sum(e);
      for (Term& term : divided) term.coefficient /= shared;
      e = number_of(std::move(divided));
    }
  }
  return add(scaled(of_atom({Atom::Kind::kMinimum, 0, std::move(operands)}), std::max<int64_t>(shared, 1)), offset);
}

Expression Expressions::maximum(Expression a, Expression b) {
  if (constant_of(a) == 1) std::swap(a, b);
  // The factor of a size in strides, whose products would have many terms.
  if (constant_of(b) == 1 && !constant_of(a)) {
    if (const int64_t low = range(a).low; low >= 0) return low > 0 ? a : of_atom({Atom::Kind::kAtLeastOne, 0, {a, b}});
  }
  return subtract(add(a, b), minimum(a, b));
}

// ---- Ranges

void Expressions::narrow(int32_t symbol, Range range) { set_range(symbol, common(range_of_symbol(symbol), range)); }

void Expressions::set_range(int32_t symbol, Range range) {
  Range& own = symbol_ranges_[static_cast<size_t>(symbol)];
  if (own == range) return;
  own = range;
  known_ranges_.clear();
}

std::vector<Expressions::Part> Expressions::parts(Expression e) const {
  std::vector<Part> found;
  for (const Term& term : sum(e)) {
    Part& part = found.emplace_back(Part{term.coefficient, {}});
    for (const int32_t factor : term.factors) {
      const Atom& a = atom(factor);
      const std::string_view signs[] = {"symbol", "//", "min", "max"};
      part.factors.push_back({signs[static_cast<size_t>(a.kind)], a.symbol, a.operands});
    }
  }
  return found;
}

Range Expressions::range(Expression e) const { return range(e, 0); }

Range Expressions::range_of_atom(const Atom& a, int depth) const {
  if (a.kind == Atom::Kind::kSymbol) return symbol_ranges_[static_cast<size_t>(a.symbol)];
  if (a.kind == Atom::Kind::kAtLeastOne) {
    const Range size = range(a.operands[0], depth);
    return {std::max<int64_t>(size.low, 1), std::max<int64_t>(size.high, 1)};
  }
  if (a.kind == Atom::Kind::kMinimum) {
    Range lowest = range(a.operands[0], depth);
    for (const Expression e : a.operands) {
      const Range other = range(e, depth);
      lowest = {std::min(lowest.low, other.low), std::min(lowest.high, other.high)};
    }
    return lowest;
  }
  const Bounds x = bounds_of(range(a.operands[0], depth)), y = bounds_of(range(a.operands[1], depth));
  if (y.low < 1) return {};
  return range_of({quotient(x.low, x.low < 0 ? y.low : y.high), quotient(x.high, x.high < 0 ? y.high : y.low)});
}

Range Expressions::range_of_sum(Expression e, int depth) const {
  Bounds bounds{0, 0};
  bool has_products = false;
  absl::flat_hash_map<int32_t, Range> of_atoms;
  for (const Term& term : sum(e)) {
    Bounds part{term.coefficient, term.coefficient};
    for (const int32_t factor : term.factors) {
      const auto [at, is_new] = of_atoms.try_emplace(factor);
      if (is_new) at->second = range_of_atom(atom(factor), depth);
      part = part * bounds_of(at->second);
    }
    bounds = bounds + part;
    has_products |= term.factors.size() > 1;
    if (term.factors.size() > kMaxFactors) return range_of(bounds);
  }
  if (!has_products) return range_of(bounds);
  // With each atom as its lower bound plus a number of at least 0: s0 * s1 - s0 is not negative for s0, s1 >= 1.
  std::map<Factors, Bound> shifted;
  for (const Term& term : sum(e)) {
    std::map<Factors, Bound> product = {{{}, term.coefficient}};
    for (const int32_t factor : term.factors) {
      const int64_t low = of_atoms[factor].low;
      std::map<Factors, Bound> next;
      for (const auto& [factors, coefficient] : product) {
        Factors more = factors;
        more.insert(std::upper_bound(more.begin(), more.end(), factor), factor);
        next[more] += coefficient;
        if (low != INT64_MIN && low != 0) {
          Bound& rest = next[factors];
          rest = clamped(rest + symbolic::product(coefficient, low));
          if (is_infinite(rest)) return range_of(bounds);
        }
      }
      product = std::move(next);
    }
    for (const auto& [factors, coefficient] : product) {
      Bound& total = shifted[factors];
      total = clamped(total + coefficient);
      if (is_infinite(total)) return range_of(bounds);
    }
  }
  Bounds others{0, 0};
  for (const auto& [factors, coefficient] : shifted) {
    Bounds part{coefficient, coefficient};
    for (const int32_t factor : factors) {
      const Bounds own = bounds_of(of_atoms[factor]);
      part = part * (own.low <= -kInfinite ? own : Bounds{0, clamped(own.high - own.low)});
    }
    others = others + part;
  }
  return common(range_of(bounds), range_of(others));
}

Range Expressions::range(Expression e, int depth) const {
  if (const auto found = known_ranges_.find({e, depth}); found != known_ranges_.end()) return found->second;
  const Range found = computed_range(e, depth);
  known_ranges_[{e, depth}] = found;
  return found;
}

Range Expressions::computed_range(Expression e, int depth) const {
  Range found = range_of_sum(e, depth);
  if (depth == kMaxDepth || sum(e).size() < 2 || sum(e).size() > kMaxTerms) return found;
  // The table is changed only by expressions that are equal to this one.
  auto& table = const_cast<Expressions&>(*this);
  const Sum terms = sum(e);
  for (const int32_t factor : Factors(terms[0].factors)) {
    if (!absl::c_all_of(terms, [&](const Term& t) { return absl::c_linear_search(t.factors, factor); })) continue;
    Expression rest = table.constant(0);
    for (Term term : terms) {
      term.factors.erase(absl::c_find(term.factors, factor));
      rest = table.add(rest, table.number_of({term}));
    }
    const Bounds of_factor = bounds_of(range_of_atom(Atom(atom(factor)), depth));
    found = common(found, range_of(of_factor * bounds_of(range(rest, depth + 1))));
    break;  // further ones are found within the rest
  }
  for (const Term& term : terms) {
    if (term.factors.empty()) continue;
    try {
      const Expression rest = table.subtract(e, table.number_of({term}));
      const bool is_maximum = term.factors.size() == 1 && atom(term.factors[0]).kind == Atom::Kind::kAtLeastOne;
      if (is_maximum || (term.factors.size() == 1 && atom(term.factors[0]).kind == Atom::Kind::kMinimum)) {
        // A sum with the minimum is the minimum, or for a negative factor the maximum, of those with its operands.
        const auto operands = atom(term.factors[0]).operands;
        std::optional<Range> chosen;
        for (const Expression operand : operands) {
          const Range r = range(table.combined(rest, operand, term.coefficient), depth + 1);
          if (!chosen) chosen = r;
          chosen = (term.coefficient > 0) != is_maximum
                       ? Range{std::min(chosen->low, r.low), std::min(chosen->high, r.high)}
                       : Range{std::max(chosen->low, r.low), std::max(chosen->high, r.high)};
        }
        found = common(found, *chosen);
        continue;
      }
      for (size_t i = 0; i < term.factors.size(); ++i) {
        const Atom divided = atom(term.factors[i]);
        if (divided.kind != Atom::Kind::kFloorDivide) continue;
        const Expression numerator = divided.operands[0], divisor = divided.operands[1];
        if (const auto by = constant_of(divisor); by && term.factors.size() == 1) {
          // k * (x // d) == (k * x - k * r) / d, where r is from 0 to d - 1
          const Range times = range(table.combined(table.scaled(rest, *by), numerator, term.coefficient), depth + 1);
          const Bounds b =
              bounds_of(times) + Bounds{-Bound{term.coefficient}, -Bound{term.coefficient}} * Bounds{0, Bound{*by} - 1};
          found = common(found, range_of({-quotient(-b.low, *by), quotient(b.high, *by)}));
        } else if (sum(divisor).size() == 1 && sum(divisor)[0].coefficient == 1) {
          // k * d * (x // d) == k * x - k * r
          Factors others = term.factors;
          others.erase(others.begin() + static_cast<int64_t>(i));
          const Range by_range = range(divisor, depth + 1);
          if (others != sum(divisor)[0].factors || by_range.low < 1) continue;
          const Bounds b = bounds_of(range(table.combined(rest, numerator, term.coefficient), depth + 1)) +
                           Bounds{-Bound{term.coefficient}, -Bound{term.coefficient}} *
                               Bounds{0, clamped(bounds_of(by_range).high - 1)};
          found = common(found, range_of(b));
        }
      }
    } catch (const std::overflow_error&) {
      continue;  // this form is beyond 64 bits
    }
  }
  return found;
}

// ---- Symbols

bool Expressions::contains(Expression e, int32_t symbol) const {
  absl::flat_hash_set<Expression> seen;
  const auto is_in = [&](const auto& self, Expression part) -> bool {
    if (!seen.insert(part).second) return false;
    return absl::c_any_of(sum(part), [&](const Term& term) {
      return absl::c_any_of(term.factors, [&](int32_t factor) {
        const Atom& a = atom(factor);
        if (a.kind == Atom::Kind::kSymbol) return a.symbol == symbol;
        return absl::c_any_of(a.operands, [&](Expression operand) { return self(self, operand); });
      });
    });
  };
  return is_in(is_in, e);
}

Expression Expressions::substitute(Expression e, int32_t symbol, Expression value) {
  absl::flat_hash_map<Expression, Expression> done;
  return substitute(e, symbol, value, done);
}

Expression Expressions::substitute(Expression e, int32_t symbol, Expression value,
                                   absl::flat_hash_map<Expression, Expression>& done) {
  if (const auto found = done.find(e); found != done.end()) return found->second;
  if (!contains(e, symbol)) return e;
  const Sum terms = sum(e);
  Expression result = constant(0);
  for (const Term& term : terms) {
    Expression product = constant(term.coefficient);
    for (const int32_t factor : term.factors) {
      const Atom a = atom(factor);
      Expression part = number_of({{{factor}, 1}});
      if (a.kind == Atom::Kind::kSymbol) {
        part = a.symbol == symbol ? value : part;
      } else {
        absl::InlinedVector<Expression, 2> operands;
        for (const Expression operand : a.operands) operands.push_back(substitute(operand, symbol, value, done));
        part = a.kind == Atom::Kind::kMinimum      ? lowest(std::move(operands))
               : a.kind == Atom::Kind::kAtLeastOne ? maximum(operands[0], operands[1])
                                                   : floor_divide(operands[0], operands[1]);
      }
      product = multiply(product, part);
    }
    result = add(result, product);
  }
  return done[e] = result;
}

std::optional<Expressions::Solution> Expressions::solve(Expression e) {
  const Sum terms = sum(e);
  for (auto term = terms.rbegin(); term != terms.rend(); ++term) {
    if (term->factors.size() != 1 || (term->coefficient != 1 && term->coefficient != -1)) continue;
    const Atom& a = atom(term->factors[0]);
    if (a.kind != Atom::Kind::kSymbol) continue;
    const int32_t symbol = a.symbol;
    const Expression rest = subtract(e, number_of({*term}));
    if (!contains(rest, symbol)) return Solution{symbol, scaled(rest, -term->coefficient)};
  }
  return std::nullopt;
}

// ---- Values and texts

int64_t Expressions::evaluate(Expression e, absl::FunctionRef<int64_t(int32_t)> value_of) const {
  absl::flat_hash_map<Expression, int64_t> done;
  return evaluate(e, value_of, done);
}

int64_t Expressions::evaluate(Expression e, absl::FunctionRef<int64_t(int32_t)> value_of,
                              absl::flat_hash_map<Expression, int64_t>& done) const {
  if (const auto found = done.find(e); found != done.end()) return found->second;
  int64_t total = 0;
  for (const Term& term : sum(e)) {
    int64_t product = term.coefficient;
    for (const int32_t factor : term.factors) {
      const Atom& a = atom(factor);
      int64_t value = a.kind == Atom::Kind::kSymbol ? value_of(a.symbol) : evaluate(a.operands[0], value_of, done);
      if (a.kind == Atom::Kind::kFloorDivide) {
        const int64_t divisor = evaluate(a.operands[1], value_of, done);
        if (divisor == 0) throw std::domain_error("integer division or modulo by zero");
        value = floor_divided(value, divisor);
      } else if (a.kind == Atom::Kind::kAtLeastOne) {
        value = std::max<int64_t>(value, 1);
      } else if (a.kind == Atom::Kind::kMinimum) {
        for (const Expression operand : a.operands) value = std::min(value, evaluate(operand, value_of, done));
      }
      product = product_of(product, value);
    }
    total = sum_of(total, product);
  }
  done[e] = total;
  return total;
}

std::string Expressions::to_string(Expression e, absl::FunctionRef<std::string(int32_t)> name_of) const {
  const Sum& s = sum(e);
  if (s.empty()) return "0";
  const auto as_operand = [&](Expression operand) {
    const std::string text = to_string(operand, name_of);
    return symbol_of(operand) || constant_of(operand) ? text : absl::StrCat("(", text, ")");
  };
  std::string text;
  const auto append = [&](const Term& term) {
    absl::InlinedVector<std::string, 2> parts;
    if (term.factors.empty() || (term.coefficient != 1 && term.coefficient != -1)) {
      parts.push_back(absl::StrCat(term.coefficient < 0 && !text.empty() ? -term.coefficient : term.coefficient));
    }
    for (const int32_t factor : term.factors) {
      const Atom& a = atom(factor);
      if (a.kind == Atom::Kind::kSymbol) {
        parts.push_back(name_of(a.symbol));
      } else if (a.kind == Atom::Kind::kFloorDivide) {
        const std::string divided = absl::StrCat(as_operand(a.operands[0]), "//", as_operand(a.operands[1]));
        parts.push_back(term.factors.size() > 1 || term.coefficient != 1 ? absl::StrCat("(", divided, ")") : divided);
      } else {
        std::string list;
        for (const Expression operand : a.operands)
          absl::StrAppend(&list, list.empty() ? "" : ", ", to_string(operand, name_of));
        parts.push_back(absl::StrCat(a.kind == Atom::Kind::kMinimum ? "min(" : "max(", list, ")"));
      }
    }
    const char* const sign = text.empty() ? (term.coefficient == -1 && !term.factors.empty() ? "-" : "")
                                          : (term.coefficient < 0 ? " - " : " + ");
    absl::StrAppend(&text, sign);
    for (size_t i = 0; i < parts.size(); ++i) absl::StrAppend(&text, i == 0 ? "" : "*", parts[i]);
  };
  for (const Term& term : s) {
    if (!term.factors.empty()) append(term);
  }
  if (s[0].factors.empty()) append(s[0]);
  return text;
}

}  // namespace symbolic
