// Writes that become values, by the text of Programs before and after.
#include <gtest/gtest.h>

#include <string>

#include "engine/program/passes/functionalise.h"
#include "engine/schema/program_types.h"
#include "tests/engine/program/calls.h"

namespace tt {
namespace {

using testing::add;
using testing::InputMetas;
using testing::slot;

std::string functional(Program program, const InputMetas& inputs) {
  functionalise(&program, inputs.types(program), inputs.metas().size());
  return to_string(program);
}

TEST(Functionalise, NamesTheValuesOfWrites) {
  Program program;
  add(&program, "matmul", {slot(1), slot(1)}, {2});
  add(&program, "relu", {slot(2)}, {2}, Instruction::kInto);
  add(&program, "add", {slot(2), slot(1)}, {2}, Instruction::kInto);
  add(&program, "exp", {slot(2)}, {3});
  program.set_outputs({3, 2});
  EXPECT_EQ(functional(program, InputMetas(Sizes{4, 4})),
            "%2 = matmul(%1, %1)\n%4 = relu(%2)\n%5 = add(%4, %1)\n%3 = exp(%5)\nread %3, %5\n");
}

TEST(Functionalise, LeavesMemoryThatOthersMayShare) {
  Program input, view, viewed, later, promoted;
  add(&input, "relu", {slot(1)}, {1}, Instruction::kInto);
  add(&view, "exp", {slot(1)}, {2});
  add(&view, "transpose", {slot(2), Arg(int64_t{0}), Arg(int64_t{1})}, {3});
  add(&view, "relu", {slot(3)}, {3}, Instruction::kInto);
  view.set_outputs({2});
  add(&viewed, "exp", {slot(1)}, {2});
  add(&viewed, "transpose", {slot(2), Arg(int64_t{0}), Arg(int64_t{1})}, {3});
  add(&viewed, "relu", {slot(2)}, {2}, Instruction::kInto);
  viewed.set_outputs({3});
  add(&promoted, "exp", {slot(1)}, {2});
  add(&promoted, "sum", {slot(2)}, {2}, Instruction::kInto);  // a result of other sizes: fails when it runs
  for (const Program* program : {&input, &view, &viewed}) {
    EXPECT_EQ(functional(*program, InputMetas(Sizes{4, 4})), to_string(*program));
  }
  add(&later, "exp", {slot(1)}, {2});
  add(&later, "relu", {slot(2)}, {2}, Instruction::kInto);
  add(&later, "transpose", {slot(2), Arg(int64_t{0}), Arg(int64_t{1})}, {3});  // of the value after the write
  add(&later, "neg", {slot(3)}, {3}, Instruction::kInto);
  later.set_outputs({2});
  EXPECT_EQ(functional(later, InputMetas(Sizes{4, 4})),
            "%2 = exp(%1)\n%4 = relu(%2)\n%3 = transpose(%4, dim0=0, dim1=1)\n%3 <- neg(%3)\nread %4\n");
}

TEST(Functionalise, KeepsWritesWithoutGradientsToValuesThatHaveThem) {
  Program program;
  add(&program, "matmul", {slot(1), slot(1)}, {2});
  add(&program, "mul", {slot(2), Arg(3.0)}, {2}, Instruction::kInto);  // under no_grad()
  add(&program, "relu", {slot(2)}, {2}, Instruction::kInto | Instruction::kGrad);
  program.set_outputs({2});
  TensorMeta input;
  input.sizes = {4, 4};
  input.strides = contiguous_strides(input.sizes);
  input.requires_grad = true;
  const TensorMeta* const metas[] = {&input};
  functionalise(&program, ProgramTypes(program, metas, /*grad_enabled=*/true), 1);
  EXPECT_EQ(to_string(program), "%2 = matmul(%1, %1)\n%2 <- mul(%2, other=3)\n%3 = relu(%2)\nread %3\n");
}

}  // namespace
}  // namespace tt
