// symbolic::Expressions: integer expressions over symbols, such as the sizes of a traced function's arguments.
//
// An expression is a number of its table. It is kept in a normal form: a sum of products of symbols, of quotients
// rounded down, and of minima and maxima, with integer factors. Equal numbers are the same expression, and equal
// expressions have equal values for all values of the symbols; two different expressions may still have equal values.
// Not thread-safe.
//
// Not in the namespace tt: the schema is compiled a second time with symbolic sizes, in another namespace, and both use
// this table.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace symbolic {

using Expression = int32_t;  // of one table

// A range of integers, ends included. INT64_MIN and INT64_MAX as ends are unbounded.
struct Range {
  int64_t low = INT64_MIN, high = INT64_MAX;
  bool is_constant() const { return low == high; }
  bool contains(int64_t value) const { return low <= value && value <= high; }
  friend bool operator==(const Range&, const Range&) = default;
};

class Expressions {
 public:
  Expression constant(int64_t value);
  // A new symbol, whose values are within the range.
  Expression symbol(Range range);

  // All throw std::overflow_error if a factor of the result is beyond 64 bits.
  Expression add(Expression a, Expression b) { return combined(a, b, 1); }
  Expression subtract(Expression a, Expression b) { return combined(a, b, -1); }
  Expression multiply(Expression a, Expression b);
  // Rounded down, as in Python. Throws std::domain_error if the divisor is the constant 0. Otherwise the expression
  // means nothing for values of the symbols for which the divisor is 0.
  Expression floor_divide(Expression a, Expression b);
  Expression modulo(Expression a, Expression b);  // a - a // b * b
  Expression minimum(Expression a, Expression b);
  Expression maximum(Expression a, Expression b);  // a + b - min(a, b), except for sizes and 1

  std::optional<int64_t> constant_of(Expression e) const;
  // The normal form, for a reader: a sum of products.
  struct Factor {
    std::string_view sign;  // "symbol", or the operation on the operands: "//", "min" or "max"
    int32_t symbol;
    absl::Span<const Expression> operands;
  };
  struct Part {
    int64_t coefficient;
    std::vector<Factor> factors;
  };
  std::vector<Part> parts(Expression e) const;
  size_t size() const { return sums_.size(); }
  // The number of a symbol, from 0, if the expression is one.
  std::optional<int32_t> symbol_of(Expression e) const;
  // Bounds of the values, by interval arithmetic on the normal form: not always the tightest.
  Range range(Expression e) const;
  // Sets the range of a symbol, or narrows it. Expressions that were built before keep their form.
  void set_range(int32_t symbol, Range range);
  void narrow(int32_t symbol, Range range);
  const Range& range_of_symbol(int32_t symbol) const { return symbol_ranges_[static_cast<size_t>(symbol)]; }
  size_t symbols() const { return symbol_ranges_.size(); }
  // The expression with another one in place of a symbol.
  Expression substitute(Expression e, int32_t symbol, Expression value);
  bool contains(Expression e, int32_t symbol) const;
  // If the expression is k * s + rest, where k is 1 or -1 and `rest` does not contain the symbol s: s and what it is
  // if the expression is 0.
  struct Solution {
    int32_t symbol;
    Expression value;
  };
  std::optional<Solution> solve(Expression e);

  // Throws std::overflow_error for a value beyond 64 bits, and std::domain_error for a division by zero.
  int64_t evaluate(Expression e, absl::FunctionRef<int64_t(int32_t symbol)> value_of) const;
  // For example "2*s0 + s1//3 + 1".
  std::string to_string(Expression e, absl::FunctionRef<std::string(int32_t symbol)> name_of) const;

 private:
  // A symbol, a quotient, a minimum of at least two operands, or the maximum of a number that is not negative and 1.
  struct Atom {
    enum class Kind : uint8_t { kSymbol, kFloorDivide, kMinimum, kAtLeastOne };
    Kind kind;
    int32_t symbol = 0;
    absl::InlinedVector<Expression, 2> operands;
    friend bool operator==(const Atom&, const Atom&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Atom& a) {
      return H::combine(std::move(h), a.kind, a.symbol, a.operands);
    }
  };
  using Factors = absl::InlinedVector<int32_t, 2>;  // atoms in ascending order, repeated for powers
  struct Term {
    Factors factors;
    int64_t coefficient;
    friend bool operator==(const Term&, const Term&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Term& t) {
      return H::combine(std::move(h), t.factors, t.coefficient);
    }
  };
  using Sum = absl::InlinedVector<Term, 2>;  // by factors, in ascending order; the constant, without factors, is first

  const Sum& sum(Expression e) const { return sums_[static_cast<size_t>(e)]; }
  const Atom& atom(int32_t a) const { return atoms_[static_cast<size_t>(a)]; }
  Expression number_of(Sum sum);
  Expression of_atom(Atom atom);
  Expression combined(Expression a, Expression b, int64_t factor_of_b);
  Expression scaled(Expression e, int64_t factor);
  Expression without_constant(Expression e);
  // The quotient if the division has no remainder, as that of polynomials.
  std::optional<Expression> exact_quotient(Expression a, Expression b);
  Expression divided_by(Expression e, int64_t divisor);
  Expression lowest(absl::InlinedVector<Expression, 2> operands);
  Range range(Expression e, int depth) const;
  Range computed_range(Expression e, int depth) const;
  // With the results for parts, of which an expression may contain one many times.
  Expression substitute(Expression e, int32_t symbol, Expression value,
                        absl::flat_hash_map<Expression, Expression>& done);
  int64_t evaluate(Expression e, absl::FunctionRef<int64_t(int32_t symbol)> value_of,
                   absl::flat_hash_map<Expression, int64_t>& done) const;
  Range range_of_sum(Expression e, int depth) const;
  Range range_of_atom(const Atom& a, int depth) const;

  // References to elements stay valid while range() adds others.
  std::deque<Sum> sums_;
  std::deque<Atom> atoms_;
  std::vector<Range> symbol_ranges_;
  mutable absl::flat_hash_map<std::pair<Expression, int>, Range> known_ranges_;  // by depth; for the symbols' ranges
  absl::flat_hash_map<Sum, Expression> sum_numbers_;
  absl::flat_hash_map<Atom, int32_t> atom_numbers_;
};

// Rounds down, as Python does. Requires that b is not 0. Throws std::overflow_error for a result beyond 64 bits.
int64_t floor_divided(int64_t a, int64_t b);

}  // namespace symbolic
