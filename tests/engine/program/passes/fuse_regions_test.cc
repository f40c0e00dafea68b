// Regions of pointwise calls that become one loop, by the text of Programs before and after.
#include <gtest/gtest.h>

#include <string>

#include "engine/program/passes/fuse_regions.h"
#include "tests/engine/program/calls.h"

namespace tt {
namespace {

using testing::add;
using testing::InputMetas;
using testing::slot;

std::string fused(Program program, const InputMetas& inputs) {
  fuse_regions(&program, inputs.types(program));
  return to_string(program);
}

// The text without the code of chains.
std::string without_steps(std::string text) {
  for (size_t at; (at = text.find(", steps=[")) != std::string::npos;) text.erase(at, text.find(']', at) + 1 - at);
  return text;
}

TEST(FuseRegions, FusesWhatIsNotAdjacentAndKeepsWhatIsRead) {
  Program program;
  add(&program, "mul", {slot(1), slot(2)}, {3});
  add(&program, "matmul", {slot(1), slot(2)}, {4});  // between the members
  add(&program, "sigmoid", {slot(3)}, {5});
  add(&program, "sum", {slot(5)}, {6});  // reads a result of the group
  add(&program, "mul", {slot(5), slot(1)}, {7});
  add(&program, "add", {slot(7), slot(4)}, {8});
  program.set_outputs({6, 8});
  EXPECT_EQ(without_steps(fused(program, InputMetas(Sizes{128, 128}, Sizes{128, 128}))),
            "%4 = matmul(%1, %2)\n%5, %8 = pointwise_chain([%1, %2, %4])\n%6 = sum(%5)\nread %6, %8\n");
}

TEST(FuseRegions, EndsWithAReduction) {
  Program program;
  add(&program, "mul", {slot(1), slot(2)}, {3});
  add(&program, "mul", {slot(3), slot(3)}, {4});
  add(&program, "mean", {slot(4)}, {5});
  add(&program, "mul", {slot(3), Arg(2.0)}, {6});
  add(&program, "sum", {slot(6)}, {7});  // a second one
  program.set_outputs({5, 6, 7});
  EXPECT_EQ(without_steps(fused(program, InputMetas(Sizes{128, 128}, Sizes{128, 128}))),
            "%6, %5 = pointwise_chain([%1, %2])\n%7 = sum(%6)\nread %5, %6, %7\n");
}

TEST(FuseRegions, DoesNotWaitForItself) {
  Program program;
  add(&program, "exp", {slot(1)}, {2});
  add(&program, "matmul", {slot(2), slot(1)}, {3});  // reads the first and is read by the last
  add(&program, "add", {slot(2), slot(3)}, {4});
  program.set_outputs({4});
  const std::string before = to_string(program);
  EXPECT_EQ(fused(program, InputMetas(Sizes{128, 128})), before);
}

TEST(FuseRegions, LeavesSmallWrittenAndDrawnValues) {
  Program small, written, drawn;
  add(&small, "exp", {slot(1)}, {2});
  add(&small, "neg", {slot(2)}, {3});
  small.set_outputs({3});
  add(&written, "exp", {slot(1)}, {2});
  add(&written, "neg", {slot(2)}, {1}, Instruction::kInto);
  add(&drawn, "rand_like", {slot(1)}, {2});
  add(&drawn, "exp", {slot(1)}, {3});
  add(&drawn, "rand_like", {slot(1)}, {4});
  drawn.set_outputs({2, 3, 4});
  EXPECT_EQ(fused(small, InputMetas(Sizes{8})), to_string(small));
  EXPECT_EQ(fused(written, InputMetas(Sizes{128, 128})), to_string(written));
  EXPECT_EQ(fused(drawn, InputMetas(Sizes{128, 128})), to_string(drawn));
}

TEST(FuseRegions, HasTheLimitsOfAChain) {
  Program program;
  for (Slot k = 1; k <= 150; ++k) add(&program, "exp", {slot(k)}, {k + 1});
  program.set_outputs({151});
  EXPECT_EQ(without_steps(fused(program, InputMetas(Sizes{128, 128}))),
            "%65 = pointwise_chain([%1])\n%129 = pointwise_chain([%65])\n%151 = pointwise_chain([%129])\nread %151\n");
}

TEST(FuseRegions, CountsNumbersThatAreTensorsOnly) {
  Program program;
  for (Slot k = 1; k <= 60; ++k) {  // the second number is a parameter: it needs no input of the loop
    add(&program, "add", {slot(k), Arg(static_cast<double>(k)), Arg(int64_t{2})}, {k + 1});
  }
  program.set_outputs({61});
  EXPECT_EQ(without_steps(fused(program, InputMetas(Sizes{8, 8}))),
            "%48 = pointwise_chain([%1])\n%61 = pointwise_chain([%48])\nread %61\n");
}

}  // namespace
}  // namespace tt
