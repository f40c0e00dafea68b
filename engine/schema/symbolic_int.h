// SymInt of the symbolic schema: an integer, or an expression of the facts in scope (facts.h).
//
// Arithmetic gives expressions. A comparison has one outcome: the known one, or the example's, which becomes a guard.
// Included by engine/schema/sym_int.h only.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>

#include "engine/symbolic/facts.h"

namespace tt {

class SymInt {
 public:
  SymInt() = default;
  template <std::integral T>
  constexpr SymInt(T value) : number_(static_cast<int64_t>(value)) {}  // NOLINT: implicit, as an integer
  static SymInt of_number(int64_t number) {
    SymInt made;
    made.number_ = number;
    return made;
  }
  // See symbolic::expression_of().
  constexpr int64_t number() const { return number_; }
  template <std::integral T>
  operator T() const {  // NOLINT: implicit, as an integer
    return static_cast<T>(symbolic::specialise(number_));
  }
  explicit operator double() const { return static_cast<double>(symbolic::specialise(number_)); }

  SymInt& operator+=(SymInt b) { return *this = of_number(symbolic::add(number_, b.number_)); }
  SymInt& operator-=(SymInt b) { return *this = of_number(symbolic::subtract(number_, b.number_)); }
  SymInt& operator*=(SymInt b) { return *this = of_number(symbolic::multiply(number_, b.number_)); }
  // Rounded to 0, as in C++.
  SymInt& operator/=(SymInt b);
  SymInt& operator%=(SymInt b) { return *this -= quotient(*this, b) * b; }
  SymInt& operator++() { return *this += 1; }
  SymInt& operator--() { return *this -= 1; }
  SymInt operator-() const { return of_number(symbolic::subtract(0, number_)); }

  friend SymInt operator+(SymInt a, SymInt b) { return a += b; }
  friend SymInt operator-(SymInt a, SymInt b) { return a -= b; }
  friend SymInt operator*(SymInt a, SymInt b) { return a *= b; }
  friend SymInt operator/(SymInt a, SymInt b) { return a /= b; }
  friend SymInt operator%(SymInt a, SymInt b) { return a %= b; }
  friend bool operator==(SymInt a, SymInt b) { return symbolic::is_equal(a.number_, b.number_); }
  friend bool operator<(SymInt a, SymInt b) { return symbolic::is_less(a.number_, b.number_); }
  friend bool operator>(SymInt a, SymInt b) { return b < a; }
  friend bool operator<=(SymInt a, SymInt b) { return !(b < a); }
  friend bool operator>=(SymInt a, SymInt b) { return !(a < b); }

 private:
  static SymInt quotient(SymInt a, SymInt b) { return a /= b; }

  int64_t number_;
};

inline SymInt& SymInt::operator/=(SymInt b) {
  if (b < SymInt(0)) return *this = -*this / -b;
  if (*this < SymInt(0)) return *this = -of_number(symbolic::floor_divide((-*this).number_, b.number_));
  return *this = of_number(symbolic::floor_divide(number_, b.number_));
}

// Operands that are integers of any type. As exact matches they are preferred to conversions of the SymInt.
#define TT_SYM_INT_OPERATOR(result, sign) \
  template <std::integral T>              \
  result operator sign(SymInt a, T b) {   \
    return a sign SymInt(b);              \
  }                                       \
  template <std::integral T>              \
  result operator sign(T a, SymInt b) {   \
    return SymInt(a) sign b;              \
  }
TT_SYM_INT_OPERATOR(SymInt, +)
TT_SYM_INT_OPERATOR(SymInt, -)
TT_SYM_INT_OPERATOR(SymInt, *)
TT_SYM_INT_OPERATOR(SymInt, /)
TT_SYM_INT_OPERATOR(SymInt, %)
TT_SYM_INT_OPERATOR(bool, ==)
TT_SYM_INT_OPERATOR(bool, !=)
TT_SYM_INT_OPERATOR(bool, <)
TT_SYM_INT_OPERATOR(bool, >)
TT_SYM_INT_OPERATOR(bool, <=)
TT_SYM_INT_OPERATOR(bool, >=)
#undef TT_SYM_INT_OPERATOR

inline SymInt larger(SymInt a, SymInt b) { return SymInt::of_number(symbolic::maximum(a.number(), b.number())); }
inline SymInt smaller(SymInt a, SymInt b) { return SymInt::of_number(symbolic::minimum(a.number(), b.number())); }
inline bool is_expression(SymInt d) { return symbolic::is_expression(d.number()); }

// The result of integers is that of a builtin. That of expressions is within 64 bits in each run, where the rules of
// integers check it.
template <typename Builtin, typename Operator>
bool overflows(SymInt a, SymInt b, SymInt* result, Builtin builtin, Operator of_expressions) {
  if (is_expression(a) || is_expression(b)) return *result = of_expressions(a, b), false;
  int64_t number = 0;
  const bool is_beyond = builtin(a.number(), b.number(), &number);
  return *result = number, is_beyond;
}
inline bool add_overflows(SymInt a, SymInt b, SymInt* sum) {
  return overflows(
      a, b, sum, [](auto... v) { return __builtin_add_overflow(v...); }, std::plus<>());
}
inline bool subtract_overflows(SymInt a, SymInt b, SymInt* difference) {
  return overflows(
      a, b, difference, [](auto... v) { return __builtin_sub_overflow(v...); }, std::minus<>());
}
inline bool multiply_overflows(SymInt a, SymInt b, SymInt* product) {
  return overflows(
      a, b, product, [](auto... v) { return __builtin_mul_overflow(v...); }, std::multiplies<>());
}
inline SymInt wrapped_product(SymInt a, SymInt b) {
  if (is_expression(a) || is_expression(b)) return a * b;
  return static_cast<int64_t>(static_cast<uint64_t>(a.number()) * static_cast<uint64_t>(b.number()));
}
inline SymInt divided_up(SymInt a, SymInt b) { return (a + b - 1) / b; }
inline bool surely_equal(SymInt a, SymInt b) { return symbolic::is_known_equal(a.number(), b.number()); }
inline int64_t hint_of(SymInt d) { return symbolic::hint_of(d.number()); }
inline bool is_within(SymInt d, int64_t limit) { return symbolic::is_example_within(d.number(), limit); }
inline std::string text_of(SymInt d) { return symbolic::to_text(d.number()); }
inline std::string message_part(SymInt d) { return text_of(d); }

}  // namespace tt
