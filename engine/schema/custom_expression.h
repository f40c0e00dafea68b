// CustomExpression: a formula of a custom operator (engine/schema/custom_operator.h), as a tree.
//
// The language of bodies, gradients and shape rules in declarations, evaluated at run time: numbers, strings, True,
// False and None, names, lists, calls with keyword arguments, `value.attribute`, `value[index]`, and Python's
// arithmetic and comparisons, which are calls of the operators of those names. The text may come from another process:
// its length, depth and number of nodes are limited. Immutable; pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/schema/scalar.h"

namespace tt {

struct CustomKeyword;

struct CustomExpression {
  enum class Kind : uint8_t {
    kNumber,  // number
    kString,  // text
    kNone,
    kName,       // text
    kList,       // items
    kCall,       // text, items, keywords; `a + b` is add(a, b), and `a.size(0)` is size(a, 0)
    kAttribute,  // text, items[0]
    kIndex,      // items[0][items[1]]
  };
  Kind kind = Kind::kNone;
  Scalar number;
  std::string text;
  std::vector<CustomExpression> items;
  std::vector<CustomKeyword> keywords;
};

// `name=value` in a call.
struct CustomKeyword {
  std::string name;
  CustomExpression value;
};

inline constexpr size_t kMaxFormula = 4096;  // characters

// Throws Error (ValueError) with the position, if the text is not one expression or exceeds the limits.
CustomExpression parse_custom_expression(std::string_view text);

// Splits at `separator` outside of parentheses, brackets and strings. Parts are without surrounding white space; an
// empty last part is left out.
std::vector<std::string_view> split_formulas(std::string_view text, char separator);

// Calls `visit(expression)` for each node, parents first.
template <typename Visit>
void visit_expression(const CustomExpression& expression, const Visit& visit) {
  visit(expression);
  for (const CustomExpression& item : expression.items) visit_expression(item, visit);
  for (const auto& [name, value] : expression.keywords) visit_expression(value, visit);
}

}  // namespace tt
