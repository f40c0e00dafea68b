// Passes over Programs, by the text before and after; what a Program must not contain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/program/passes/merge_equal.h"
#include "engine/program/passes/pattern.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/program/program_run.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "engine/schema/program_types.h"

namespace tt {
namespace {

using ::testing::HasSubstr;

Arg slot(Slot name) { return slot_arg(name); }

// Adds `results` = op(args).
Instruction& add(Program* program, std::string_view op, std::vector<Arg> args, std::vector<Slot> results,
                 uint8_t flags = Instruction::kGrad) {
  Instruction& instruction = program->add(*find_op(op), args, results);
  instruction.flags = flags;
  return instruction;
}

std::string merged(Program program) {
  merge_equal(&program);
  return to_string(program);
}

std::string without_unused(Program program) {
  remove_unused(&program);
  return to_string(program);
}

TEST(MergeEqual, ReplacesRepeatedCalls) {
  Program program;
  add(&program, "relu", {slot(1)}, {2});
  add(&program, "relu", {slot(1)}, {3});
  add(&program, "exp", {slot(2)}, {4});
  add(&program, "exp", {slot(3)}, {5});
  add(&program, "sub", {slot(4), slot(5)}, {6});
  program.set_outputs({6});
  EXPECT_EQ(merged(program), "%2 = relu(%1)\n%4 = exp(%2)\n%6 = sub(%4, %4)\nread %6\n");
}

TEST(MergeEqual, KeepsWhatMayDiffer) {
  Program program;
  const std::vector<int64_t> sizes = {2};
  add(&program, "add", {slot(1), Arg(1.0)}, {2});
  add(&program, "add", {slot(1), Arg(2.0)}, {3});                       // another argument
  add(&program, "add", {slot(1), Arg(1.0)}, {4}, 0);                    // not recorded
  add(&program, "rand", {Arg(absl::Span<const int64_t>(sizes))}, {5});  // another draw
  add(&program, "rand", {Arg(absl::Span<const int64_t>(sizes))}, {6});
  add(&program, "add", {slot(1), Arg(1.0)}, {7});  // an output of its own
  program.set_outputs({2, 3, 4, 5, 6, 7});
  const std::string before = to_string(program);
  EXPECT_EQ(merged(program), before);
}

TEST(MergeEqual, LeavesProgramsThatWriteAlone) {
  Program program;
  add(&program, "relu", {slot(1)}, {2});
  add(&program, "add", {slot(1), Arg(1.0)}, {1}, Instruction::kInto);
  add(&program, "relu", {slot(1)}, {3});
  program.set_outputs({2, 3});
  const std::string before = to_string(program);
  EXPECT_EQ(merged(program), before);
}

TEST(RemoveUnused, RemovesAndDrops) {
  Program program;
  add(&program, "exp", {slot(1)}, {2});
  add(&program, "relu", {slot(1)}, {3});
  add(&program, "neg", {slot(2)}, {4});
  add(&program, "mul", {slot(3), slot(3)}, {5});
  add(&program, "add", {slot(5), slot(1)}, {6});
  program.set_outputs({6});
  EXPECT_EQ(without_unused(program), "%3 = relu(%1)\n%5 = mul(%3, %3)\n%6 = add(%5, %1)  # drops %3\nread %6\n");
}

TEST(RemoveUnused, KeepsDrawsAndWrites) {
  Program program;
  const std::vector<int64_t> sizes = {2};
  add(&program, "rand", {Arg(absl::Span<const int64_t>(sizes))}, {2});
  add(&program, "add", {slot(1), Arg(1.0)}, {1}, Instruction::kInto);
  add(&program, "exp", {slot(1)}, {3});
  EXPECT_EQ(without_unused(program), "%2 = rand(size=[2])\n%1 <- add(%1, other=1)  # drops %2\n");
}

TEST(PatternTest, MatchesNamesNumbersAndParts) {
  Program program;
  add(&program, "relu", {slot(1)}, {3});
  add(&program, "mul", {slot(2), slot(3)}, {4});
  add(&program, "add", {slot(4), Arg(0.5)}, {5});
  add(&program, "sub", {slot(5), slot(3)}, {6});
  program.set_outputs({6});
  const UseDefs uses(program);
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

TEST(PatternTest, RefusesOtherTexts) {
  for (const char* text : {"", "x", "relu(x", "unknown(x)", "relu(x) y", "r = relu(x)", "relu(,)"}) {
    EXPECT_THROW(Pattern{text}, Error) << text;
  }
}

struct Refused {
  const char* name;
  void (*build)(Program*);
  const char* message;
};
void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.name; }

class CheckProgram : public ::testing::TestWithParam<Refused> {};

TEST_P(CheckProgram, Refuses) {
  Program program;
  GetParam().build(&program);
  try {
    check_program(program, 1);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr(GetParam().message));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, CheckProgram,
    ::testing::Values(
        Refused{"unknown_name", [](Program* p) { add(p, "relu", {slot(2)}, {3}); },
                "expected a name that exists, got 2"},
        Refused{"used_name", [](Program* p) { add(p, "relu", {slot(1)}, {1}); }, "the name 1 was used before"},
        Refused{"no_name", [](Program* p) { add(p, "relu", {slot(1)}, {0}); }, "expected a name of 1 to"},
        Refused{"large_name", [](Program* p) { add(p, "relu", {slot(1)}, {Slot{1} << 40}); },
                "expected a name of 1 to"},
        Refused{"dropped_name", [](Program* p) { p->add(*find_op("relu"), {slot(1)}, {{2}}, {{1}}); },
                "expected a name that exists, got 1"},
        Refused{"results",
                [](Program* p) {
                  add(p, "relu", {slot(1)}, {2, 3});
                },
                "expected 1 result names, got 2"},
        Refused{"arguments",
                [](Program* p) {
                  add(p, "relu", {slot(1), Arg(1.0)}, {2});
                },
                "takes 1 arguments, got 2"},
        Refused{"kind", [](Program* p) { add(p, "relu", {Arg(std::string_view("x"))}, {2}); },
                "another kind of argument"},
        Refused{"dynamic", [](Program* p) { add(p, "nonzero", {slot(1)}, {2}); }, "depend on values"},
        Refused{"missing_output", [](Program* p) { p->set_outputs({2}); }, "to be results, got the name 2"},
        Refused{"input_output", [](Program* p) { p->set_outputs({1}); }, "to be results, got the name 1"},
        Refused{"output_twice",
                [](Program* p) {
                  add(p, "relu", {slot(1)}, {2});
                  p->set_outputs({2, 2});
                },
                "got 2 twice"},
        Refused{"release", [](Program* p) { p->set_release({1}); }, "drops no names at its end"}),
    [](const auto& info) { return info.param.name; });

TEST(ProgramTypes, FollowsTheRules) {
  Program program;
  add(&program, "matmul", {slot(1), slot(2)}, {3});
  add(&program, "sum", {slot(3)}, {4});
  add(&program, "exp", {slot(4)}, {5}, 0);
  TensorMeta a, b;
  a.sizes = {2, 3};
  a.strides = {3, 1};
  b.sizes = {3, 5};
  b.strides = {5, 1};
  b.requires_grad = true;
  const TensorMeta* inputs[] = {&a, &b};
  const ProgramTypes types(program, inputs, true);
  EXPECT_EQ(types.of(3).sizes, (Sizes{2, 5}));
  EXPECT_TRUE(types.of(3).requires_grad && types.of(4).requires_grad);
  EXPECT_FALSE(types.of(5).requires_grad) << "the instruction is not recorded";
  EXPECT_FALSE(ProgramTypes(program, inputs, false).of(4).requires_grad);
  b.sizes = {4, 5};
  EXPECT_THROW(ProgramTypes(program, inputs, true), Error);
}

}  // namespace
}  // namespace tt
