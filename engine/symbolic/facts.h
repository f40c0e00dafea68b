// symbolic::Facts: the constraints on the symbols of a trace, by declared ranges and by guards.
//
// A trace asks for the outcome of comparisons. Those that the facts decide have the same outcome in every run. Of
// others it takes the outcome for the example, and assumes it from then on: a guard, which every run must fulfil. Used
// by one thread at a time.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "engine/symbolic/expressions.h"

namespace symbolic {

// A statement about an expression: it is 0, or it is not negative.
enum class Relation : uint8_t { kZero, kNotNegative };

struct Guard {
  Expression expression;
  Relation relation;
  bool expected;
  std::string where;  // the user's line
};

// Thrown for a comparison that the facts do not decide and that has no example: it depends on values of tensors.
class Undecided final : public std::exception {
 public:
  Undecided(std::string text) : text_(std::move(text)) {}  // NOLINT: "s0 == 3"
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

class Facts {
 public:
  using Where = std::function<std::string()>;
  // `where` describes the line of the function that is running, for guards; may be null.
  explicit Facts(Where where = nullptr) : where_(std::move(where)) {}
  Facts(const Facts&) = delete;
  Facts& operator=(const Facts&) = delete;

  Expressions& expressions() { return expressions_; }
  const Expressions& expressions() const { return expressions_; }
  // A new symbol. Without an example it depends on values of tensors.
  Expression symbol(Range range, std::optional<int64_t> example);
  // The value for the example; nullopt if it depends on values of tensors. Throws std::overflow_error beyond 64 bits.
  std::optional<int64_t> example_of(Expression e) const;
  // The expression with what is known to be equal to it in place of symbols: equal ones become one.
  Expression simplified(Expression e);

  // The outcome in all runs, if the facts decide it.
  std::optional<bool> known(Expression e, Relation relation);
  // The outcome, which becomes a guard unless it is known. Throws Undecided.
  bool decide(Expression e, Relation relation);
  // The value for the example, which becomes a guard unless it is known. Throws Undecided.
  int64_t specialise(Expression e);
  // States an outcome, which something else ensures in every run. Returns false if the facts exclude it.
  bool assume(Expression e, Relation relation, bool outcome = true);

  // Whether hint_of() was asked for an expression since the last call of this.
  bool take_hinted() { return std::exchange(hinted_, false); }
  void set_hinted() { hinted_ = true; }

  const std::vector<Guard>& guards() const { return guards_; }
  // Forgets the guards, and everything that they and assume() have taught: for a caller that infers each call alone.
  void forget();
  std::string to_string(Expression e) const;
  static std::string name_of_symbol(int32_t symbol) { return "s" + std::to_string(symbol); }

 private:
  std::optional<bool> known_zero(Expression e);
  std::optional<bool> known_not_negative(Expression e);
  void learn(Expression e, Relation relation, bool outcome);
  void learn_zero(Expression e);
  void learn_not_negative(Expression e);

  Expressions expressions_;
  const Where where_;
  std::vector<Range> ranges_;                                  // by symbol, as declared
  std::vector<std::optional<int64_t>> examples_;               // by symbol
  std::vector<std::pair<int32_t, Expression>> substitutions_;  // symbols that are equal to expressions of others
  std::vector<Expression> not_negative_;
  absl::flat_hash_set<Expression> not_zero_;
  std::vector<Guard> guards_;
  bool hinted_ = false;
};

// ---- Numbers that may be expressions
//
// The symbolic schema computes with 64-bit numbers of which some stand for expressions: those in a range that no size,
// stride or offset has. Functions on them use the facts of the thread's innermost Scope; without one, all are integers.

// While it exists, the thread's numbers refer to these facts.
class Scope {
 public:
  explicit Scope(Facts& facts);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Facts* const outer_;
};

inline constexpr int64_t kFirstNumber = INT64_MIN + (int64_t{1} << 40);
inline bool is_expression(int64_t number) {
  return number >= kFirstNumber && number < kFirstNumber + (int64_t{1} << 31);
}
// The number of an expression: the integer if it is constant. Throws std::overflow_error for an integer in the range.
int64_t number_of(const Facts& facts, Expression e);
// The expression of a number. Throws std::invalid_argument for one that no expression of these facts has.
Expression expression_of(Facts& facts, int64_t number);

// Operations on numbers; those of integers are Python's, and throw std::overflow_error beyond 64 bits.
int64_t add(int64_t a, int64_t b);
int64_t subtract(int64_t a, int64_t b);
int64_t multiply(int64_t a, int64_t b);
// Rounded down. C++ rounds to 0, which is the same for sizes; throws std::domain_error for a division by 0.
int64_t floor_divide(int64_t a, int64_t b);
int64_t modulo(int64_t a, int64_t b);
int64_t minimum(int64_t a, int64_t b);
int64_t maximum(int64_t a, int64_t b);
bool is_equal(int64_t a, int64_t b);
bool is_less(int64_t a, int64_t b);
bool is_known_equal(int64_t a, int64_t b);  // assumes nothing
// The value for the example; without one, a number that no other size of the trace has. Assumes nothing.
int64_t hint_of(int64_t number);
// Whether that value is at most the limit; true without an example.
bool is_example_within(int64_t number, int64_t limit);
int64_t specialise(int64_t number);
std::string to_text(int64_t number);

}  // namespace symbolic
