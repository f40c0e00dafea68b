// The texts that explain a Program: chains as expressions, and why calls are not one loop.
#include <gtest/gtest.h>

#include <string>

#include "engine/device/parallel.h"
#include "engine/program/passes/fuse_regions.h"
#include "engine/program/passes/fusion_limits.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/program/readable_text.h"
#include "tests/engine/program/calls.h"

namespace tt {
namespace {

using testing::add;
using testing::InputMetas;
using testing::slot;

Program fused(Program program, const InputMetas& inputs) {
  fuse_regions(&program, inputs.types(program));
  return program;
}

// What remains apart after fuse_regions.
std::string apart(Program program, const InputMetas& inputs, const std::string& reason = "") {
  return explain_fusion(fused(std::move(program), inputs), inputs.metas(), /*grad_enabled=*/false, reason);
}

const InputMetas& large() {
  static const InputMetas inputs(Sizes{128, 128}, Sizes{128, 128});
  return inputs;
}

TEST(ReadableText, ChainsAreExpressions) {
  Program program;
  add(&program, "add", {slot(1), Arg(1.0)}, {3});
  add(&program, "mul", {slot(3), slot(2)}, {4});
  add(&program, "exp", {slot(4)}, {5});
  add(&program, "sum", {slot(5)}, {6});
  program.set_outputs({4, 6});
  program = fused(program, large());
  EXPECT_EQ(readable_text(program),
            "%4, %6 = pointwise_chain([%1, %2])\n    %4 = mul(add(%1, other=1), %2)\n    %6 = sum(exp(%4))\n"
            "read %4, %6\n");
  remove_unused(&program);
  EXPECT_EQ(readable_text(program),
            "%4, %6 = pointwise_chain([%1, %2])\n    %4 = mul(add(%1, other=1), %2)\n"
            "    %6 = sum(exp(%4))\nread %4, %6\n");
}

TEST(ReadableText, NamesWhatIsReadTwice) {
  Program program;
  add(&program, "exp", {slot(1)}, {3});
  add(&program, "mul", {slot(3), slot(3)}, {4});
  add(&program, "sub", {slot(4), slot(3)}, {5});
  program.set_outputs({5});
  EXPECT_EQ(readable_text(fused(program, large())),
            "%5 = pointwise_chain([%1])\n    t1 = exp(%1)\n    %5 = sub(mul(t1, t1), t1)\nread %5\n");
}

TEST(ReadableText, LeavesInvalidCodeAsItIs) {
  Program program;
  const std::vector<Slot> inputs = {1};
  const std::vector<int64_t> code = {1, 2, 3};
  Arg list;
  list.kind = Arg::Kind::kSlots;
  list.size = 1;
  list.slots = inputs.data();
  add(&program, "pointwise_chain", {list, Arg(absl::Span<const int64_t>(code))}, {2});
  program.set_outputs({2});
  EXPECT_EQ(readable_text(program), to_string(program));
}

TEST(ExplainFusion, SaysNothingWhereOneLoopIsLeft) {
  Program program;
  add(&program, "exp", {slot(1)}, {3});
  add(&program, "neg", {slot(3)}, {4});
  program.set_outputs({4});
  EXPECT_EQ(apart(program, large()), "");
}

TEST(ExplainFusion, KernelsOfTheirOwnAndViews) {
  Program program;
  add(&program, "exp", {slot(1)}, {3});
  add(&program, "matmul", {slot(3), slot(2)}, {4});
  add(&program, "neg", {slot(4)}, {5});
  add(&program, "transpose", {slot(5), Arg(0), Arg(1)}, {6});
  add(&program, "exp", {slot(6)}, {7});
  program.set_outputs({7});
  EXPECT_EQ(apart(program, large()),
            "%3 = exp and %4 = matmul: matmul has a kernel of its own\n"
            "%4 = matmul and %5 = neg: matmul has a kernel of its own\n"
            "%5 = neg and %6 = transpose: layout: transpose returns a view\n"
            "%6 = transpose and %7 = exp: layout: transpose returns a view\n");
}

TEST(ExplainFusion, SizesDtypesAndSmallValues) {
  Program sizes, dtype, small;
  add(&sizes, "exp", {slot(2)}, {3});
  add(&sizes, "mul", {slot(1), slot(3)}, {4});
  sizes.set_outputs({4});
  EXPECT_EQ(apart(sizes, InputMetas(Sizes{64, 128}, Sizes{128})),
            "%3 = exp and %4 = mul: sizes: [128] and [64, 128]\n");
  add(&dtype, "gt", {slot(1), Arg(0.0)}, {3});
  add(&dtype, "mul", {slot(1), slot(3)}, {4});
  dtype.set_outputs({4});
  EXPECT_EQ(apart(dtype, large()),
            "%3 = gt and %4 = mul: dtype: loops compute float32 and float64, gt computes bool\n");
  add(&small, "exp", {slot(1)}, {2});
  add(&small, "neg", {slot(2)}, {3});
  small.set_outputs({3});
  EXPECT_EQ(apart(small, InputMetas(Sizes{8})),
            "%2 = exp and %3 = neg: size: exp has 8 elements, loops are for at least 16\n");
}

TEST(ExplainFusion, Layouts) {
  Program program;
  add(&program, "exp", {slot(1)}, {3});
  add(&program, "mul", {slot(2), slot(3)}, {4});
  program.set_outputs({4});
  InputMetas inputs(Sizes{32, 32}, Sizes{32, 32});
  inputs.meta(0).strides = {1, 32};
  EXPECT_EQ(apart(program, inputs), "%3 = exp and %4 = mul: layout: strides [1, 32] and [32, 1]\n");
}

TEST(ExplainFusion, WritesDivideWhatThePassesSee) {
  Program between, in_place;
  add(&between, "exp", {slot(1)}, {3});
  add(&between, "add", {slot(2), Arg(1.0)}, {2}, Instruction::kInto);
  add(&between, "neg", {slot(3)}, {4});
  between.set_outputs({4});
  EXPECT_EQ(apart(between, large()), "%3 = exp and %4 = neg: writes: add between them writes in place\n");
  add(&in_place, "exp", {slot(1)}, {3});
  add(&in_place, "sub", {slot(2), slot(3)}, {2}, Instruction::kInto);
  in_place.set_outputs({3});
  EXPECT_EQ(apart(in_place, large()), "%3 = exp and %2 = sub: writes: sub writes in place\n");
}

TEST(ExplainFusion, UsesBetweenAndSizeLimits) {
  Program between, limit;
  add(&between, "exp", {slot(1)}, {3});
  add(&between, "matmul", {slot(3), slot(2)}, {4});
  add(&between, "add", {slot(3), slot(4)}, {5});
  between.set_outputs({5});
  EXPECT_EQ(apart(between, large()),
            "%3 = exp and %4 = matmul: matmul has a kernel of its own\n"
            "%3 = exp and %5 = add: used elsewhere: %4 is computed from the first, and the second reads it\n"
            "%4 = matmul and %5 = add: matmul has a kernel of its own\n");
  for (Slot k = 2; k <= 100; ++k) add(&limit, "exp", {slot(k == 2 ? 1 : k)}, {k + 1});
  limit.set_outputs({101});
  EXPECT_EQ(apart(limit, large()), "%66 = loop and %101 = loop: size limit: a loop has at most 64 calls\n");
}

TEST(ExplainFusion, Reductions) {
  Program second, inner, after;
  add(&second, "mul", {slot(1), slot(2)}, {3});
  add(&second, "mul", {slot(3), Arg(2.0)}, {4});
  add(&second, "sum", {slot(4)}, {5});
  add(&second, "mean", {slot(3)}, {6});
  second.set_outputs({5, 6});
  const std::string text = apart(second, InputMetas(Sizes{1024, 1024}, Sizes{1024, 1024}));
  EXPECT_NE(text.find("%3, %5 = loop and %6 = mean: a loop ends with one reduction, and this one has another\n"),
            std::string::npos)
      << text;
  add(&inner, "mul", {slot(1), slot(2)}, {3});
  add(&inner, "sum", {slot(3)}, {4});
  add(&inner, "exp", {slot(3)}, {5});
  inner.set_outputs({4, 5});
  EXPECT_EQ(apart(inner, large()),
            "%3, %5 = loop and %4 = sum: used elsewhere: other calls of the loop read %3, and the "
            "reduced value has to be last\n");
  add(&after, "exp", {slot(1)}, {3});
  const std::vector<int64_t> dims = {1};
  add(&after, "sum", {slot(3), Arg(absl::Span<const int64_t>(dims)), Arg(true)}, {4});
  add(&after, "mul", {slot(3), slot(4)}, {5});
  after.set_outputs({5});
  EXPECT_EQ(apart(after, InputMetas(Sizes{64, 1024})),
            "%3, %4 = loop and %5 = mul: used elsewhere: %4 is computed from the first, and the second reads it\n"
            "%3, %4 = loop and %5 = mul: %4 is a reduction: it is complete before it is read\n");
}

TEST(ExplainFusion, ReductionsOverOtherDimensionsRunAfterTheLoop) {
  Program program;
  add(&program, "exp", {slot(1)}, {2});
  const std::vector<int64_t> dims = {1};
  add(&program, "sum", {slot(2), Arg(absl::Span<const int64_t>(dims))}, {3});
  program.set_outputs({3});
  EXPECT_EQ(
      apart(program, InputMetas(Sizes{4096, 64})),
      "%3 = loop: sum of [4096, 64] to [4096] runs after the loop; reduction over a dimension with fewer than 512 "
      "neighbouring elements\n");
  EXPECT_EQ(apart(program, InputMetas(Sizes{4096, 1024})), "");
  if (num_threads() > 1) {
    EXPECT_NE(apart(program, InputMetas(Sizes{1, 4096})).find("divided among fewer threads"), std::string::npos);
  }
}

TEST(ExplainFusion, GivesTheReasonOfThePasses) {
  Program program;
  add(&program, "exp", {slot(1)}, {3});
  add(&program, "neg", {slot(3)}, {4});
  program.set_outputs({4});
  EXPECT_EQ(explain_fusion(program, large().metas(), /*grad_enabled=*/false, "the loops would take more memory"),
            "%3 = exp and %4 = neg: the loops would take more memory\n");
}

}  // namespace
}  // namespace tt
