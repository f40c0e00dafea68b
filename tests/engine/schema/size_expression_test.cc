#include "engine/schema/size_expression.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "engine/schema/error.h"

namespace tt {
namespace {

using Kind = SizeTerm::Kind;

SizeTerm number(int64_t value) { return {Kind::kConstant, value}; }
SizeTerm size(uint64_t name, int64_t dim) { return {Kind::kSize, dim, name}; }
SizeTerm op(Kind kind) { return {kind}; }

// Sizes are 100 * name + dim.
int64_t value_of(const std::vector<SizeTerm>& terms) {
  check_size_expression(terms);
  return evaluate(terms, [](const SizeTerm& term) { return static_cast<int64_t>(term.name) * 100 + term.number; });
}

int64_t of_two(int64_t a, int64_t b, Kind kind) { return value_of({number(a), number(b), op(kind)}); }

TEST(SizeExpression, ComputesAsPythonDoes) {
  EXPECT_EQ(value_of({size(2, 1)}), 201);
  EXPECT_EQ(value_of({size(1, 0), number(3), op(Kind::kMultiply), number(1), op(Kind::kAdd)}), 301);
  EXPECT_EQ(of_two(2, 5, Kind::kSubtract), -3);
  EXPECT_EQ(of_two(7, 2, Kind::kFloorDivide), 3);
  EXPECT_EQ(of_two(-7, 2, Kind::kFloorDivide), -4);
  EXPECT_EQ(of_two(7, -2, Kind::kFloorDivide), -4);
  EXPECT_EQ(of_two(-7, -2, Kind::kFloorDivide), 3);
  EXPECT_EQ(of_two(-7, 2, Kind::kModulo), 1);
  EXPECT_EQ(of_two(7, -2, Kind::kModulo), -1);
  EXPECT_EQ(of_two(6, -2, Kind::kModulo), 0);
  EXPECT_EQ(of_two(2, 5, Kind::kMinimum), 2);
  EXPECT_EQ(of_two(2, 5, Kind::kMaximum), 5);
}

TEST(SizeExpression, RefusesWhatHasNoValue) {
  EXPECT_THROW(of_two(1, 0, Kind::kFloorDivide), Error);
  EXPECT_THROW(of_two(1, 0, Kind::kModulo), Error);
  EXPECT_THROW(of_two(INT64_MAX, 1, Kind::kAdd), Error);
  EXPECT_THROW(of_two(INT64_MIN, 1, Kind::kSubtract), Error);
  EXPECT_THROW(of_two(INT64_MAX, 2, Kind::kMultiply), Error);
  EXPECT_THROW(of_two(INT64_MIN, -1, Kind::kFloorDivide), Error);
  EXPECT_THROW(of_two(INT64_MIN, -1, Kind::kModulo), Error);
  EXPECT_THROW(check_size_expression({}), Error);
  EXPECT_THROW(check_size_expression({number(1), number(2)}), Error);
  EXPECT_THROW(check_size_expression({number(1), op(Kind::kAdd)}), Error);
  EXPECT_THROW(check_size_expression(std::vector<SizeTerm>{{static_cast<Kind>(9)}}), Error) << "no term of Programs";
  std::vector<SizeTerm> longest(kMaxSizeTerms / 2, number(1));
  longest.resize(kMaxSizeTerms - 1, op(Kind::kAdd));
  EXPECT_EQ(value_of(longest), static_cast<int64_t>(kMaxSizeTerms / 2));
  longest.insert(longest.begin(), 2, number(1));
  EXPECT_THROW(check_size_expression(longest), Error);
}

TEST(SizeExpression, TextHasTheBracketsThatItNeeds) {
  EXPECT_EQ(to_string(std::vector<SizeTerm>{size(1, 0), number(2), op(Kind::kMultiply), number(1), op(Kind::kAdd)}),
            "size(%1, 0) * 2 + 1");
  EXPECT_EQ(to_string(std::vector<SizeTerm>{size(1, 0), number(1), op(Kind::kAdd), number(2), op(Kind::kMultiply)}),
            "(size(%1, 0) + 1) * 2");
  EXPECT_EQ(
      to_string(std::vector<SizeTerm>{number(8), size(3, 1), number(1), op(Kind::kSubtract), op(Kind::kSubtract)}),
      "8 - (size(%3, 1) - 1)");
  EXPECT_EQ(
      to_string(std::vector<SizeTerm>{number(8), size(3, 1), op(Kind::kMinimum), number(2), op(Kind::kFloorDivide)}),
      "min(8, size(%3, 1)) // 2");
}

}  // namespace
}  // namespace tt
