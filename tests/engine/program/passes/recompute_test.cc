// Peak memory of Programs, and values that backward computes again.
#include <gtest/gtest.h>

#include <string>

#include "engine/program/passes/fuse_regions.h"
#include "engine/program/passes/peak_memory.h"
#include "engine/program/passes/recompute.h"
#include "engine/program/passes/remove_unused.h"
#include "tests/engine/program/calls.h"

namespace tt {
namespace {

using testing::add;
using testing::InputMetas;
using testing::slot;

int64_t peak_of(const Program& program, const InputMetas& inputs) { return peak_bytes(program, inputs.metas(), true); }

TEST(PeakMemory, CountsWhatExistsAtOnce) {
  Program program;
  add(&program, "exp", {slot(1)}, {2});
  add(&program, "exp", {slot(2)}, {3});
  add(&program, "add", {slot(3), slot(3)}, {4});
  add(&program, "sum", {slot(4)}, {5});
  program.set_outputs({5});
  const int64_t each = 8 * 8 * 4;
  EXPECT_EQ(peak_of(program, InputMetas(Sizes{8, 8})), 3 * each + 4) << "nothing is dropped";
  remove_unused(&program);
  EXPECT_EQ(peak_of(program, InputMetas(Sizes{8, 8})), 2 * each);
  const InputMetas large(Sizes{128, 128});
  fuse_regions(&program, large.types(program));
  EXPECT_EQ(peak_of(program, large), 4) << "one loop stores the sum";
}

TEST(PeakMemory, ViewsKeepTheirBase) {
  Program program;
  add(&program, "exp", {slot(1)}, {2});
  add(&program, "transpose", {slot(2), Arg(0), Arg(1)}, {3});
  add(&program, "transpose", {slot(1), Arg(0), Arg(1)}, {4});  // of an input
  add(&program, "exp", {slot(3)}, {5});
  add(&program, "add", {slot(5), slot(4)}, {6});
  program.set_outputs({6});
  remove_unused(&program);
  EXPECT_EQ(peak_of(program, InputMetas(Sizes{8, 8})), 2 * 8 * 8 * 4);
}

// Marks the latest instruction as one of a region.
void mark(Program* program, uint8_t mark) { program->mutable_instructions().back().flags |= mark; }

TEST(Recompute, ComputesInnerValuesBeforeBackwardReadsThem) {
  Program program;
  add(&program, "exp", {slot(1)}, {2});
  mark(&program, Instruction::kRecomputeOdd);
  add(&program, "sin", {slot(2)}, {3});
  mark(&program, Instruction::kRecomputeOdd);
  add(&program, "neg", {slot(3)}, {4});  // the region's result
  mark(&program, Instruction::kRecomputeOdd);
  add(&program, "tanh", {slot(4)}, {5});
  mark(&program, Instruction::kRecomputeEven);
  add(&program, "exp", {slot(5)}, {6});  // of the next region, of which the caller gets the result
  mark(&program, Instruction::kRecomputeEven);
  add(&program, "mul", {slot(6), slot(5)}, {7});
  add(&program, "mul", {slot(7), slot(4)}, {8});
  add(&program, "mul", {slot(8), slot(3)}, {9});
  add(&program, "mul", {slot(9), slot(2)}, {10});
  program.set_outputs({6, 10});
  recompute({false, false, false, false, false, true, true, true, true}, nullptr, {}, 1, &program);
  EXPECT_EQ(to_string(program),
            "%2 = exp(%1)\n%3 = sin(%2)\n%4 = neg(%3)\n%5 = tanh(%4)\n%6 = exp(%5)\n"
            "%11 = tanh(%4)\n%7 = mul(%6, %11)\n%8 = mul(%7, %4)\n"
            "%12 = exp(%1)\n%13 = sin(%12)\n%9 = mul(%8, %13)\n%10 = mul(%9, %12)\nread %6, %10\n");
  remove_marks(&program);
  for (const Instruction& instruction : program.instructions())
    EXPECT_EQ(instruction.flags & Instruction::kRecompute, 0);
}

TEST(Recompute, KeepsRandomNumbersAndUnmarkedValues) {
  Program program;
  add(&program, "rand_like", {slot(1)}, {2});
  mark(&program, Instruction::kRecomputeOdd);
  add(&program, "mul", {slot(1), slot(2)}, {3});
  mark(&program, Instruction::kRecomputeOdd);
  add(&program, "exp", {slot(3)}, {4});
  add(&program, "mul", {slot(4), slot(2)}, {5});
  program.set_outputs({5});
  const std::string before = to_string(program);
  recompute({false, false, false, true}, nullptr, {}, 1, &program);
  EXPECT_EQ(to_string(program), before);
}

}  // namespace
}  // namespace tt
