// Equal calls that become one, by the text of Programs before and after.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/program/passes/merge_equal.h"
#include "engine/schema/program_types.h"
#include "tests/engine/program/calls.h"

namespace tt {
namespace {

using testing::add;
using testing::slot;
using testing::without_unused;

// With float32 inputs of four elements.
std::string merged(Program program, size_t inputs = 1, bool requires_grad = false, bool recorded = false) {
  std::vector<TensorMeta> metas(inputs);
  std::vector<const TensorMeta*> pointers;
  for (TensorMeta& meta : metas) {
    meta.sizes = {4};
    meta.strides = {1};
    meta.requires_grad = requires_grad;
    pointers.push_back(&meta);
  }
  merge_equal(&program, ProgramTypes(program, pointers, /*grad_enabled=*/true), recorded);
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

TEST(MergeEqual, KeepsWhatDependsOnTheSession) {
  Program program;
  const std::vector<int64_t> sizes = {2};
  add(&program, "get_rng_state", {}, {2});
  add(&program, "rand", {Arg(absl::Span<const int64_t>(sizes))}, {3});
  add(&program, "get_rng_state", {}, {4});
  add(&program, "eq", {slot(2), slot(4)}, {5});
  program.set_outputs({5});
  const std::string before = to_string(program);
  EXPECT_EQ(merged(program), before);
}

TEST(MergeEqual, KeepsWhatOutputsAreViewsOf) {
  Program program;
  add(&program, "exp", {slot(1)}, {2});
  add(&program, "exp", {slot(1)}, {3});
  add(&program, "detach", {slot(2)}, {4});
  add(&program, "detach", {slot(3)}, {5});
  program.set_outputs({4, 5});  // the caller may write to one of them
  const std::string before = to_string(program);
  EXPECT_EQ(merged(program), before);
}

TEST(MergeEqual, KeepsCallsThatTheTapeRecords) {
  Program program;
  add(&program, "exp", {slot(1)}, {2});
  add(&program, "exp", {slot(1)}, {3});
  add(&program, "mul", {slot(2), slot(3)}, {4});
  program.set_outputs({4});
  const std::string before = to_string(program);
  EXPECT_EQ(merged(program, 1, /*requires_grad=*/true), before);
  EXPECT_NE(merged(program), before);
  EXPECT_NE(merged(program, 1, /*requires_grad=*/true, /*recorded=*/true), before);  // differentiated once
}

TEST(MergeEqual, KeepsLeavesApart) {
  Program program;
  add(&program, "detach", {slot(1)}, {2});
  add(&program, "requires_grad", {slot(2), Arg(true)}, {});
  add(&program, "detach", {slot(1)}, {3});
  add(&program, "requires_grad", {slot(3), Arg(true)}, {});
  add(&program, "mul", {slot(2), slot(3)}, {4});
  program.set_outputs({4});
  const std::string before = to_string(program);
  EXPECT_EQ(merged(program, 1, /*requires_grad=*/false, /*recorded=*/true), before);
  EXPECT_EQ(without_unused(program).find("requires_grad"), before.find("requires_grad"));
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

}  // namespace
}  // namespace tt
