#include "engine/schema/size_expression.h"

#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"
#include "engine/symbolic/facts.h"

namespace tt {
namespace {

using Kind = SizeTerm::Kind;

bool is_operand(const SizeTerm& term) { return term.kind == Kind::kConstant || term.describes_value(); }

int64_t combine(Kind kind, int64_t a, int64_t b) {
  switch (kind) {
    case Kind::kAdd: return symbolic::add(a, b);
    case Kind::kSubtract: return symbolic::subtract(a, b);
    case Kind::kMultiply: return symbolic::multiply(a, b);
    case Kind::kFloorDivide: return symbolic::floor_divide(a, b);
    case Kind::kModulo: return symbolic::modulo(a, b);
    case Kind::kMinimum: return symbolic::minimum(a, b);
    case Kind::kMaximum: return symbolic::maximum(a, b);
    default: return 0;
  }
}

// How tightly an operator binds; operands bind tightest.
int precedence(Kind kind) {
  switch (kind) {
    case Kind::kAdd:
    case Kind::kSubtract: return 0;
    case Kind::kMultiply:
    case Kind::kFloorDivide:
    case Kind::kModulo: return 1;
    default: return 2;
  }
}

const char* symbol(Kind kind) {
  switch (kind) {
    case Kind::kAdd: return " + ";
    case Kind::kSubtract: return " - ";
    case Kind::kMultiply: return " * ";
    case Kind::kFloorDivide: return " // ";
    case Kind::kModulo: return " % ";
    case Kind::kMinimum: return "min";
    case Kind::kMaximum: return "max";
    case Kind::kSize: return "size";
    case Kind::kStride: return "stride";
    case Kind::kOffset: return "storage_offset";
    case Kind::kIsContiguous: return "is_contiguous";
    default: return "?";
  }
}

}  // namespace

void check_size_expression(SizeExpression terms) {
  check(ErrorKind::kValue, terms.size() <= kMaxSizeTerms, "an expression of sizes has at most ", kMaxSizeTerms,
        " terms, got ", terms.size());
  size_t depth = 0;
  for (const SizeTerm& term : terms) {
    check(ErrorKind::kValue, static_cast<int>(term.kind) < SizeTerm::kKinds, "expected a kind of term below ",
          SizeTerm::kKinds, ", got ", static_cast<int>(term.kind));
    check(ErrorKind::kValue, is_operand(term) || depth >= 2, "an operator in an expression of sizes lacks an operand");
    is_operand(term) ? ++depth : --depth;
  }
  check(ErrorKind::kValue, depth == 1, "expected one expression of sizes, got ", depth);
}

int64_t evaluate(SizeExpression terms, absl::FunctionRef<int64_t(const SizeTerm&)> value_of) try {
  std::array<int64_t, kMaxSizeTerms> stack{};
  size_t depth = 0;
  for (const SizeTerm& term : terms) {
    if (is_operand(term)) {
      stack[depth++] = term.kind == Kind::kConstant ? term.number : value_of(term);
    } else {
      --depth;
      stack[depth - 1] = combine(term.kind, stack[depth - 1], stack[depth]);
    }
  }
  return stack[0];
} catch (const std::domain_error&) {
  fail(ErrorKind::kValue, "division by zero in a size of a Program");
} catch (const std::overflow_error&) {
  fail(ErrorKind::kValue, "a size of a Program is beyond 64 bits");
}

std::string to_string(SizeExpression terms) {
  return to_string(terms, [](uint64_t name) { return absl::StrCat("%", name); });
}

std::string to_string(SizeExpression terms, absl::FunctionRef<std::string(uint64_t)> describe) {
  std::vector<std::pair<std::string, int>> stack;  // texts and their precedences
  for (const SizeTerm& term : terms) {
    if (term.kind == Kind::kConstant) {
      stack.emplace_back(absl::StrCat(term.number), 2);
      continue;
    }
    if (term.describes_value()) {
      const bool has_dim = term.kind == Kind::kSize || term.kind == Kind::kStride;
      stack.emplace_back(absl::StrCat(symbol(term.kind), "(", describe(term.name),
                                      has_dim ? absl::StrCat(", ", term.number) : "", ")"),
                         2);
      continue;
    }
    if (stack.size() < 2) return "?";
    const auto [right, right_precedence] = std::move(stack.back());
    stack.pop_back();
    auto& [left, left_precedence] = stack.back();
    const int own = precedence(term.kind);
    if (own == 2) {
      left = absl::StrCat(symbol(term.kind), "(", left, ", ", right, ")");
    } else {
      const bool is_closed = right_precedence > own;  // a - (b - c), a // (b * c)
      left = absl::StrCat(left_precedence < own ? "(" : "", left, left_precedence < own ? ")" : "", symbol(term.kind),
                          is_closed ? "" : "(", right, is_closed ? "" : ")");
    }
    left_precedence = own;
  }
  return stack.size() == 1 ? std::move(stack.back().first) : "?";
}

}  // namespace tt
