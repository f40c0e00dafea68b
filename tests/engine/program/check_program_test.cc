// What a Program must not contain, and the types of its values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/program/program_run.h"
#include "engine/schema/error.h"
#include "engine/schema/op.h"
#include "engine/schema/program_types.h"
#include "tests/engine/program/calls.h"

namespace tt {
namespace {

using testing::add;
using ::testing::HasSubstr;
using testing::slot;

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
        Refused{"leaf_outside",
                [](Program* p) {
                  add(p, "requires_grad", {slot(1), Arg(true)}, {});
                },
                "a Program cannot contain it for an input"},
        Refused{"accumulating_pass",
                [](Program* p) {
                  static const Slot kInput[] = {1}, kNone[] = {0};
                  Arg roots, gradients;
                  roots.kind = gradients.kind = Arg::Kind::kSlots;
                  roots.size = gradients.size = 1;
                  roots.slots = kInput;
                  gradients.slots = kNone;
                  add(p, "backward", {roots, gradients, roots, Arg(true)}, {2});
                },
                "accumulates into leaves"},
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

TEST(ProgramTypes, KnowsWhatLeavesRequire) {
  Program program;
  add(&program, "detach", {slot(1)}, {2});
  add(&program, "requires_grad", {slot(2), Arg(true)}, {});
  add(&program, "exp", {slot(2)}, {3});
  TensorMeta input;
  input.sizes = {2};
  input.strides = {1};
  const TensorMeta* inputs[] = {&input};
  const ProgramTypes types(program, inputs, true);
  EXPECT_TRUE(types.of(2).requires_grad && types.of(3).requires_grad);
  EXPECT_FALSE(types.of(1).requires_grad);
}

}  // namespace
}  // namespace tt
