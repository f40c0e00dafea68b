// Calls that nothing reads, by the text of Programs before and after.
#include <gtest/gtest.h>

#include <vector>

#include "tests/engine/program/calls.h"

namespace tt {
namespace {

using testing::add;
using testing::slot;
using testing::without_unused;

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

}  // namespace
}  // namespace tt
