// Patterns of calls, and what they match.
#include <gtest/gtest.h>

#include "engine/program/passes/live_uses.h"
#include "engine/program/passes/pattern.h"
#include "engine/schema/error.h"
#include "tests/engine/program/calls.h"

namespace tt {
namespace {

using testing::add;
using testing::slot;
using testing::slots;

TEST(PatternTest, MatchesNamesNumbersAndParts) {
  Program program;
  add(&program, "relu", {slot(1)}, {3});
  add(&program, "mul", {slot(2), slot(3)}, {4});
  add(&program, "add", {slot(4), Arg(0.5)}, {5});
  add(&program, "sub", {slot(5), slot(3)}, {6});
  program.set_outputs({6});
  const LiveUses uses(program);
  PatternMatch match;
  const Pattern pattern("r = relu(x) sub(add(mul(r, y), $c), r)");
  ASSERT_TRUE(pattern.match(program, uses, 3, &match));
  EXPECT_EQ(match.tensors.at("x"), 1u);
  EXPECT_EQ(match.tensors.at("y"), 2u);
  EXPECT_EQ(match.numbers.at("$c"), 0.5);
  EXPECT_EQ(match.instructions.size(), 3u);
  EXPECT_FALSE(pattern.match(program, uses, 2, &match)) << "another operator";
  EXPECT_FALSE(Pattern("sub(add(mul(x, x), 0.5), y)").match(program, uses, 3, &match)) << "x would be two values";
  EXPECT_FALSE(Pattern("sub(add(x, 0.6), y)").match(program, uses, 3, &match)) << "another number";
  EXPECT_TRUE(Pattern("sub(add(x, 0.5), y)").match(program, uses, 3, &match));
  EXPECT_FALSE(Pattern("sub(x, relu(y))").match(program, uses, 3, &match)) << "mul reads the inner result, too";
}

TEST(PatternTest, TriesAlternativesInOrder) {
  Program program;
  add(&program, "mul", {slot(1), Arg(2.0)}, {3});
  add(&program, "add", {slot(3), Arg(-HUGE_VAL)}, {4});
  program.set_outputs({4});
  const LiveUses uses(program);
  PatternMatch match;
  const Pattern pattern("s = div(x, $d) | mul(x, $m) | x add(s, -inf, @alpha)");
  ASSERT_TRUE(pattern.match(program, uses, 1, &match));
  EXPECT_EQ(match.tensors.at("x"), 1u);
  EXPECT_EQ(match.numbers.at("$m"), 2);
  EXPECT_FALSE(match.numbers.contains("$d"));
  EXPECT_EQ(match.arguments.at("@alpha").to_double(), 1);
  ASSERT_TRUE(Pattern("add(div(x, $d) | x, -inf)").match(program, uses, 1, &match));
  EXPECT_EQ(match.tensors.at("x"), 3u);
  EXPECT_FALSE(Pattern("add(x, inf)").match(program, uses, 1, &match));
  EXPECT_FALSE(Pattern("add(x, 5)").match(program, uses, 1, &match));
}

TEST(PatternTest, MatchesListsOfTensors) {
  constexpr Slot kNames[] = {2, 3}, kAbsent[] = {2, 0};
  Program program;
  add(&program, "index", {slot(1), slots(kNames)}, {4});
  add(&program, "index", {slot(1), slots(kAbsent)}, {5});
  program.set_outputs({4, 5});
  const LiveUses uses(program);
  PatternMatch match;
  const Pattern pattern("index(x, [a, b])");
  ASSERT_TRUE(pattern.match(program, uses, 0, &match));
  EXPECT_EQ(match.tensors.at("a"), 2u);
  EXPECT_EQ(match.tensors.at("b"), 3u);
  EXPECT_FALSE(pattern.match(program, uses, 1, &match)) << "a dimension that is not indexed";
  EXPECT_FALSE(Pattern("index(x, [a])").match(program, uses, 0, &match));
  EXPECT_FALSE(Pattern("index(x, [a, a])").match(program, uses, 0, &match));
}

TEST(PatternTest, RefusesOtherTexts) {
  for (const char* text : {"", "x", "relu(x |)", "relu(x) | relu(y)", "relu(x", "unknown(x)", "relu(x) y",
                           "r = relu(x)", "relu(,)", "index(x, [a", "index(x, [a b])"}) {
    EXPECT_THROW(Pattern{text}, Error) << text;
  }
}

}  // namespace
}  // namespace tt
