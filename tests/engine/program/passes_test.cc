// Passes over Programs, by the text before and after; what a Program must not contain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/device/cancellation.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/program/passes/between_writes.h"
#include "engine/program/passes/fold_constants.h"
#include "engine/program/passes/functionalise.h"
#include "engine/program/passes/fuse_convolutions.h"
#include "engine/program/passes/fuse_linear.h"
#include "engine/program/passes/fuse_regions.h"
#include "engine/program/passes/keep_channels_last.h"
#include "engine/program/passes/leading_values.h"
#include "engine/program/passes/live_uses.h"
#include "engine/program/passes/merge_equal.h"
#include "engine/program/passes/pattern.h"
#include "engine/program/passes/peak_memory.h"
#include "engine/program/passes/recompute.h"
#include "engine/program/passes/remove_identities.h"
#include "engine/program/passes/remove_unused.h"
#include "engine/program/passes/rewrite.h"
#include "engine/program/program_run.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "engine/schema/program_types.h"
#include "engine/session/context.h"
#include "engine/session/programs.h"
#include "kernels/cpu/cpu.h"

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

// The metadata of `count` float32 inputs of these sizes.
class Inputs {
 public:
  Inputs(size_t count, Sizes sizes) {
    metas_.resize(count);
    for (TensorMeta& meta : metas_) {
      meta.sizes = sizes;
      meta.strides = contiguous_strides(sizes);
      pointers_.push_back(&meta);
    }
  }
  ProgramTypes types(const Program& program) const { return ProgramTypes(program, pointers_, /*grad_enabled=*/false); }
  absl::Span<const TensorMeta* const> metas() const { return pointers_; }

 private:
  std::vector<TensorMeta> metas_;
  std::vector<const TensorMeta*> pointers_;
};

std::string fused(Program program, const Inputs& inputs) {
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
  EXPECT_EQ(without_steps(fused(program, Inputs(2, {128, 128}))),
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
  EXPECT_EQ(without_steps(fused(program, Inputs(2, {128, 128}))),
            "%6, %5 = pointwise_chain([%1, %2])\n%7 = sum(%6)\nread %5, %6, %7\n");
}

TEST(FuseRegions, DoesNotWaitForItself) {
  Program program;
  add(&program, "exp", {slot(1)}, {2});
  add(&program, "matmul", {slot(2), slot(1)}, {3});  // reads the first and is read by the last
  add(&program, "add", {slot(2), slot(3)}, {4});
  program.set_outputs({4});
  const std::string before = to_string(program);
  EXPECT_EQ(fused(program, Inputs(1, {128, 128})), before);
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
  EXPECT_EQ(fused(small, Inputs(1, {8})), to_string(small));
  EXPECT_EQ(fused(written, Inputs(1, {128, 128})), to_string(written));
  EXPECT_EQ(fused(drawn, Inputs(1, {128, 128})), to_string(drawn));
}

TEST(FuseRegions, HasTheLimitsOfAChain) {
  Program program;
  for (Slot k = 1; k <= 150; ++k) add(&program, "exp", {slot(k)}, {k + 1});
  program.set_outputs({151});
  EXPECT_EQ(without_steps(fused(program, Inputs(1, {128, 128}))),
            "%65 = pointwise_chain([%1])\n%129 = pointwise_chain([%65])\n%151 = pointwise_chain([%129])\nread %151\n");
}

TEST(FuseRegions, CountsNumbersThatAreTensorsOnly) {
  Program program;
  for (Slot k = 1; k <= 60; ++k) {  // the second number is a parameter: it needs no input of the loop
    add(&program, "add", {slot(k), Arg(static_cast<double>(k)), Arg(int64_t{2})}, {k + 1});
  }
  program.set_outputs({61});
  EXPECT_EQ(without_steps(fused(program, Inputs(1, {8, 8}))),
            "%48 = pointwise_chain([%1])\n%61 = pointwise_chain([%48])\nread %61\n");
}

int64_t peak_of(const Program& program, const Inputs& inputs) { return peak_bytes(program, inputs.metas(), true); }

TEST(PeakMemory, CountsWhatExistsAtOnce) {
  Program program;
  add(&program, "exp", {slot(1)}, {2});
  add(&program, "exp", {slot(2)}, {3});
  add(&program, "add", {slot(3), slot(3)}, {4});
  add(&program, "sum", {slot(4)}, {5});
  program.set_outputs({5});
  const int64_t each = 8 * 8 * 4;
  EXPECT_EQ(peak_of(program, Inputs(1, {8, 8})), 3 * each + 4) << "nothing is dropped";
  remove_unused(&program);
  EXPECT_EQ(peak_of(program, Inputs(1, {8, 8})), 2 * each);
  const Inputs large(1, {128, 128});
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
  EXPECT_EQ(peak_of(program, Inputs(1, {8, 8})), 2 * 8 * 8 * 4);
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

// The metadata of inputs of other sizes.
class MixedInputs {
 public:
  explicit MixedInputs(std::vector<Sizes> all) {
    metas_.resize(all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      metas_[i].sizes = all[i];
      metas_[i].strides = contiguous_strides(all[i]);
      pointers_.push_back(&metas_[i]);
    }
  }
  absl::Span<const TensorMeta* const> metas() const { return pointers_; }
  ProgramTypes types(const Program& program) const { return ProgramTypes(program, pointers_, /*grad_enabled=*/false); }

 private:
  std::vector<TensorMeta> metas_;
  std::vector<const TensorMeta*> pointers_;
};

std::string functional(Program program, const MixedInputs& inputs) {
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
  EXPECT_EQ(functional(program, MixedInputs({{4, 4}})),
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
    EXPECT_EQ(functional(*program, MixedInputs({{4, 4}})), to_string(*program));
  }
  add(&later, "exp", {slot(1)}, {2});
  add(&later, "relu", {slot(2)}, {2}, Instruction::kInto);
  add(&later, "transpose", {slot(2), Arg(int64_t{0}), Arg(int64_t{1})}, {3});  // of the value after the write
  add(&later, "neg", {slot(3)}, {3}, Instruction::kInto);
  later.set_outputs({2});
  EXPECT_EQ(functional(later, MixedInputs({{4, 4}})),
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

// gelu(%3 + linear(%1, %2)), and perhaps another reader of the layer's result.
std::string linear_layer(bool is_read_twice, const Sizes& rows) {
  Program program;
  add(&program, "linear", {slot(1), slot(2)}, {6});
  add(&program, "add", {slot(3), slot(6)}, {7});
  add(&program, "gelu_erf", {slot(7)}, {8});
  if (is_read_twice) add(&program, "neg", {slot(6)}, {9});
  is_read_twice ? program.set_outputs({8, 9}) : program.set_outputs({8});
  const MixedInputs inputs({{rows[0], 80}, {128, 80}, {rows[0], 128}});
  fuse_linear(&program, inputs.types(program));
  return to_string(program);
}

TEST(FuseLinear, TakesASumAndAnActivation) {
  EXPECT_EQ(linear_layer(false, {64}), "%8 = fused_linear(%1, %2, bias=None, %3, activation='gelu')\nread %8\n");
  EXPECT_THAT(linear_layer(true, {64}), HasSubstr("%6 = linear(%1, %2)"));
  EXPECT_THAT(linear_layer(false, {1}), HasSubstr("%6 = linear(%1, %2)"));  // the kernel for vectors has no epilogue
}

TEST(FuseLinear, TakesOtherActivations) {
  for (const char* activation : {"relu", "sigmoid", "tanh", "silu"}) {
    Program program;
    add(&program, "linear", {slot(1), slot(2)}, {3});
    add(&program, activation, {slot(3)}, {4});
    program.set_outputs({4});
    fuse_linear(&program, MixedInputs({{64, 80}, {128, 80}}).types(program));
    EXPECT_EQ(to_string(program), absl::StrCat("%4 = fused_linear(%1, %2, bias=None, added=None, activation='",
                                               activation, "')\nread %4\n"));
  }
}

TEST(FuseLinear, DividesASumBetweenTwoLayers) {
  Program program;
  add(&program, "linear", {slot(1), slot(2)}, {6});
  add(&program, "linear", {slot(3), slot(2)}, {7});
  add(&program, "add", {slot(6), slot(7)}, {8});
  program.set_outputs({8});
  fuse_linear(&program, MixedInputs({{64, 80}, {128, 80}, {64, 80}}).types(program));
  const std::string text = to_string(program);
  EXPECT_THAT(text, HasSubstr("= fused_linear("));
  EXPECT_THAT(text, HasSubstr("%7 = linear(%3, %2)"));
}

// A convolution of a 1x3x8x8 image with 4 weights, its norm, a sum and an activation.
Program residual(const char* activation, bool reads_norm) {
  Program program;
  add(&program, "conv2d", {slot(1), slot(2)}, {6});
  add(&program, "batch_norm", {slot(6), slot(3), slot(3), slot(3), slot(3)}, {7});
  add(&program, "add", {slot(4), slot(7)}, {8});
  add(&program, activation, {slot(8)}, {9});
  if (reads_norm) add(&program, "neg", {slot(7)}, {10});
  reads_norm ? program.set_outputs({9, 10}) : program.set_outputs({9});
  return program;
}
const Sizes kImage = {1, 3, 8, 8}, kWeight = {4, 3, 3, 3}, kChannels = {4}, kResult = {1, 4, 6, 6};

std::string convolved(Program program, const MixedInputs& inputs) {
  fuse_convolutions(&program, inputs.types(program));
  return to_string(program);
}

TEST(FuseConvolutions, TakesWhatFollows) {
  const MixedInputs inputs({kImage, kWeight, kChannels, kResult});
  const std::string common =
      "fused_convolution(%1, %2, bias=None, stride=[1, 1], padding=[0, 0], dilation=[1, 1], groups=1, ";
  EXPECT_EQ(convolved(residual("relu", false), inputs), "%9 = " + common +
                                                            "%3, %3, %3, %3, eps=1e-05, %4, "
                                                            "activation='relu')\nread %9\n");
  const std::string norm_only = convolved(residual("relu", true), inputs);
  EXPECT_THAT(norm_only, HasSubstr("%7 = " + common));
  EXPECT_THAT(norm_only, HasSubstr("added=None, activation='none')"));
  for (const char* activation : {"silu", "sigmoid", "tanh", "mish", "hardsigmoid", "gelu_tanh"}) {
    EXPECT_THAT(convolved(residual(activation, false), inputs),
                HasSubstr(absl::StrCat("%4, activation='", activation, "')")));
  }
  EXPECT_THAT(convolved(residual("gelu", false), inputs), HasSubstr("activation='gelu')"));
  EXPECT_THAT(convolved(residual("leaky_relu", false), inputs), HasSubstr("activation='leaky_relu')"));
  EXPECT_THAT(convolved(residual("exp", false), inputs), HasSubstr("%9 = exp(%8)"));
}

TEST(FuseConvolutions, DividesASumBetweenTwoConvolutions) {
  Program program;
  add(&program, "conv2d", {slot(1), slot(2)}, {6});
  add(&program, "conv2d", {slot(1), slot(2), slot(3)}, {7});
  add(&program, "add", {slot(6), slot(7)}, {8});
  add(&program, "relu", {slot(8)}, {9});
  program.set_outputs({9});
  const std::string text = convolved(program, MixedInputs({kImage, kWeight, kChannels}));
  EXPECT_THAT(text, HasSubstr("%7 = conv2d(%1, %2, %3)"));
  EXPECT_THAT(text, HasSubstr("eps=0, %7, activation='relu')"));
}

TEST(FuseConvolutions, LeavesOtherCallsAlone) {
  Program training, scaled, twice;
  add(&training, "conv2d", {slot(1), slot(2)}, {6});
  add(&training, "batch_norm", {slot(6), slot(3), slot(3), slot(3), slot(3), Arg(true)}, {7});
  training.set_outputs({7});
  add(&scaled, "conv2d", {slot(1), slot(2)}, {6});
  add(&scaled, "add", {slot(6), slot(4), Arg(2.0)}, {7});
  scaled.set_outputs({7});
  add(&twice, "conv2d", {slot(1), slot(2)}, {6});
  add(&twice, "add", {slot(6), slot(6)}, {7});
  twice.set_outputs({7});
  const MixedInputs inputs({kImage, kWeight, kChannels, kResult});
  EXPECT_EQ(convolved(training, inputs), to_string(training));  // it writes its running statistics
  for (const Program* program : {&scaled, &twice}) {
    EXPECT_EQ(convolved(*program, inputs), without_unused(*program));
  }
}

std::string laid_out(const Program& program, const MixedInputs& inputs, bool exact = false) {
  return to_string(keep_channels_last(program, inputs.types(program), inputs.metas(), exact));
}

TEST(KeepChannelsLast, KeepsTheLayoutBetweenConvolutions) {
  Program program;
  const std::vector<int64_t> size = {-1};
  add(&program, "conv2d", {slot(1), slot(2)}, {4});
  add(&program, "relu", {slot(4)}, {5});
  add(&program, "conv2d", {slot(5), slot(3)}, {6});
  add(&program, "reshape", {slot(6), Arg(absl::Span<const int64_t>(size))}, {7});
  program.set_outputs({7});
  EXPECT_EQ(laid_out(program, MixedInputs({kImage, kWeight, {5, 4, 3, 3}})),
            "%8 = permute(%1, dims=[0, 2, 3, 1])\n"
            "%9 = contiguous(%8)  # drops %1\n"
            "%10 = permute(%9, dims=[0, 3, 1, 2])  # drops %8\n"
            "%11 = conv2d(%10, %2)  # drops %9\n"
            "%12 = relu(%11)  # drops %10, %2\n"
            "%13 = conv2d(%12, %3)  # drops %11\n"
            "%14 = contiguous(%13)  # drops %12, %3\n"
            "%7 = reshape(%14, shape=[-1])  # drops %13\n"
            "read %7\n");
}

TEST(KeepChannelsLast, MeansReadTheLayoutUnlessExact) {
  Program program;
  const std::vector<int64_t> dims = {2, 3};
  add(&program, "conv2d", {slot(1), slot(2)}, {4});
  add(&program, "mean", {slot(4), Arg(absl::Span<const int64_t>(dims)), Arg(true)}, {5});
  program.set_outputs({5});
  const MixedInputs inputs({kImage, kWeight});
  EXPECT_THAT(laid_out(program, inputs), HasSubstr("%5 = mean(%9, dim=[2, 3], keepdim=True)"));
  EXPECT_EQ(laid_out(program, inputs, true), to_string(program));
}

TEST(KeepChannelsLast, GivesTheCallerTheLayoutThatItExpects) {
  Program alone, read;
  add(&alone, "conv2d", {slot(1), slot(2)}, {4});
  alone.set_outputs({4});
  add(&read, "conv2d", {slot(1), slot(2)}, {4});
  add(&read, "relu", {slot(4)}, {5});
  read.set_outputs({4, 5});
  const MixedInputs inputs({kImage, kWeight});
  EXPECT_EQ(laid_out(alone, inputs), to_string(alone));  // nothing else would read its result as it is
  EXPECT_THAT(laid_out(read, inputs), HasSubstr("%11 = contiguous(%9)\n%12 = contiguous(%10)"));
}

TEST(MapBetweenWrites, ChangesEachPart) {
  Program program;
  add(&program, "exp", {slot(1)}, {3});
  add(&program, "exp", {slot(1)}, {4});
  add(&program, "mul", {slot(3), slot(4)}, {5});
  add(&program, "add", {slot(2), slot(5)}, {2}, Instruction::kInto);
  add(&program, "exp", {slot(2)}, {6});  // not that of the first part
  add(&program, "exp", {slot(2)}, {7});
  add(&program, "sub", {slot(6), slot(7)}, {8});
  program.set_outputs({8});
  const MixedInputs inputs({{4}, {4}});
  std::vector<size_t> counts;
  const Program changed =
      map_between_writes(program, inputs.metas(), false, [&](Program part, absl::Span<const TensorMeta* const> metas) {
        counts.push_back(metas.size());
        merge_equal(&part, ProgramTypes(part, metas, false), /*recorded=*/false);
        return part;
      });
  EXPECT_THAT(counts, ::testing::ElementsAre(1, 1));  // the tensors that each part reads
  EXPECT_EQ(to_string(changed),
            "%3 = exp(%1)\n%4 = mul(%3, %3)  # drops %1\n%2 <- add(%2, %4)  # drops %3\n"
            "%5 = exp(%2)  # drops %4\n%6 = sub(%5, %5)  # drops %2\nread %6\n");
}

TEST(LeadingValues, DividesAtTheFirstWriteAndJoins) {
  Program program;
  add(&program, "exp", {slot(1)}, {3});
  add(&program, "relu", {slot(3)}, {4});
  add(&program, "add", {slot(2), slot(4)}, {2}, Instruction::kInto);
  add(&program, "neg", {slot(3)}, {5});
  add(&program, "exp", {slot(2)}, {6});
  program.set_outputs({5, 6});
  const LeadingValues leading(program, 2, /*at_least=*/0);
  EXPECT_EQ(to_string(leading.program()), "%3 = exp(%1)\n%4 = relu(%3)  # drops %1\nread %4, %3\n");
  Program renamed;  // what passes may make of it
  add(&renamed, "exp", {slot(1)}, {7});
  add(&renamed, "relu", {slot(7)}, {8});
  renamed.set_outputs({8, 7});
  EXPECT_EQ(to_string(*leading.joined(std::move(renamed))),
            "%7 = exp(%1)\n%8 = relu(%7)  # drops %1\n%2 <- add(%2, %8)\n%9 = neg(%7)  # drops %8\n"
            "%10 = exp(%2)  # drops %7\nread %9, %10\n");
}

TEST(LeadingValues, AreAllOfAProgramWithoutWrites) {
  Program program;
  add(&program, "exp", {slot(1)}, {2});
  program.set_outputs({2});
  const LeadingValues leading(program, 1, /*at_least=*/0);
  EXPECT_EQ(to_string(leading.program()), to_string(program));
}

TEST(RemoveIdentities, RemovesProductsWithOne) {
  Program program;
  add(&program, "mul", {slot(1), Arg(1.0)}, {2});
  add(&program, "mul", {Arg(int64_t{1}), slot(2)}, {3});
  add(&program, "exp", {slot(3)}, {4});
  add(&program, "mul", {slot(4), Arg(2.0)}, {5});
  add(&program, "mul", {slot(5), Arg(1.0)}, {6});  // an output of its own
  program.set_outputs({6});
  remove_identities(&program, Inputs(1, {4}).types(program));
  EXPECT_EQ(to_string(program), "%4 = exp(%1)\n%5 = mul(%4, other=2)\n%6 = mul(%5, other=1)\nread %6\n");
}

// The Program without the identities that its output depends on.
std::string without_identities(Program program, const Sizes& sizes = {4, 4}) {
  remove_identities(&program, Inputs(2, sizes).types(program));
  remove_unused(&program);
  return to_string(program);
}

TEST(RemoveIdentities, RemovesArithmeticThatKeepsTheBits) {
  Program program;
  add(&program, "div", {slot(1), Arg(1.0)}, {3});
  add(&program, "sub", {slot(3), Arg(0.0)}, {4});
  add(&program, "add", {slot(4), Arg(-0.0)}, {5});
  add(&program, "neg", {slot(5)}, {6});
  add(&program, "neg", {slot(6)}, {7});
  add(&program, "relu", {slot(7)}, {8});
  add(&program, "relu", {slot(8)}, {9});
  add(&program, "maximum", {slot(9), slot(9)}, {10});
  add(&program, "clone", {slot(10)}, {11});
  add(&program, "to_dtype", {slot(11), Arg(static_cast<int64_t>(DType::kFloat32))}, {12});
  add(&program, "dropout", {slot(12), Arg(0.5), Arg(false)}, {13});
  add(&program, "exp", {slot(13)}, {14});
  program.set_outputs({14});
  EXPECT_EQ(without_identities(program), "%8 = relu(%1)\n%14 = exp(%8)  # drops %1\nread %14\n");
}

TEST(RemoveIdentities, KeepsArithmeticThatMayChangeBits) {
  const std::vector<std::vector<Arg>> sums = {{slot(1), Arg(0.0)},  // makes 0.0 of -0.0
                                              {slot(1), Arg(int64_t{0})},
                                              {slot(1), Arg(-0.0), Arg(-1.0)}};
  for (const std::vector<Arg>& args : sums) {
    Program program;
    add(&program, "add", args, {3});
    add(&program, "exp", {slot(3)}, {4});
    program.set_outputs({4});
    EXPECT_THAT(without_identities(program), HasSubstr("add(%1"));
  }
  Program differences, dtypes, quotients;
  add(&differences, "sub", {slot(1), Arg(-0.0)}, {3});
  add(&differences, "sub", {Arg(0.0), slot(3)}, {4});
  add(&differences, "exp", {slot(4)}, {5});
  differences.set_outputs({5});
  EXPECT_THAT(without_identities(differences), HasSubstr("%4 = sub(input=0, %3)"));
  add(&dtypes, "to_dtype", {slot(1), Arg(static_cast<int64_t>(DType::kFloat64))}, {3});
  add(&dtypes, "exp", {slot(3)}, {4});
  dtypes.set_outputs({4});
  EXPECT_THAT(without_identities(dtypes), HasSubstr("to_dtype"));
  add(&quotients, "div", {slot(1), Arg(1.0), Arg(std::string_view("floor"))}, {3});
  add(&quotients, "exp", {slot(3)}, {4});
  quotients.set_outputs({4});
  EXPECT_THAT(without_identities(quotients), HasSubstr("div"));
}

TEST(RemoveIdentities, RemovesViewsThatCancel) {
  const std::vector<int64_t> to = {1, 2, 0}, back = {2, 0, 1}, same = {2, 3, 4}, kept = {-1, 3, 4};
  const auto ints = [](const std::vector<int64_t>& list) { return Arg(absl::Span<const int64_t>(list)); };
  Program program;
  add(&program, "permute", {slot(1), ints(to)}, {3});
  add(&program, "permute", {slot(3), ints(back)}, {4});
  add(&program, "transpose", {slot(4), Arg(int64_t{0}), Arg(int64_t{-1})}, {5});
  add(&program, "transpose", {slot(5), Arg(int64_t{2}), Arg(int64_t{0})}, {6});
  add(&program, "reshape", {slot(6), ints(same)}, {7});
  add(&program, "expand", {slot(7), ints(kept)}, {8});
  add(&program, "contiguous", {slot(8)}, {9});
  add(&program, "exp", {slot(9)}, {10});
  program.set_outputs({10});
  EXPECT_EQ(without_identities(program, {2, 3, 4}), "%10 = exp(%1)\nread %10\n");
}

TEST(RemoveIdentities, RemovesAViewOfEverything) {
  const std::vector<int64_t> same = {4, 4};
  for (const char* op : {"reshape", "view", "expand"}) {
    Program program;
    add(&program, "exp", {slot(1)}, {3});
    add(&program, op, {slot(3), Arg(absl::Span<const int64_t>(same))}, {4});
    add(&program, "neg", {slot(4)}, {5});
    program.set_outputs({5});
    EXPECT_EQ(without_identities(program), "%3 = exp(%1)\n%5 = neg(%3)  # drops %1\nread %5\n");
  }
}

TEST(RemoveIdentities, RemovesViewsOfWhatItRemoves) {
  Program program;
  add(&program, "exp", {slot(1)}, {3});
  add(&program, "mul", {slot(3), Arg(1.0)}, {4});
  add(&program, "t", {slot(4)}, {5});
  add(&program, "t", {slot(5)}, {6});
  add(&program, "neg", {slot(6)}, {7});
  program.set_outputs({7});
  EXPECT_EQ(without_identities(program), "%3 = exp(%1)\n%7 = neg(%3)  # drops %1\nread %7\n");
}

TEST(RemoveIdentities, MergesReshapesAndKeepsCopies) {
  const std::vector<int64_t> flat = {-1}, rows = {4, 4}, columns = {2, 8};
  const auto ints = [](const std::vector<int64_t>& list) { return Arg(absl::Span<const int64_t>(list)); };
  Program merged, copied, placed;
  add(&merged, "reshape", {slot(1), ints(flat)}, {3});
  add(&merged, "unsqueeze", {slot(3), Arg(int64_t{0})}, {4});
  add(&merged, "view", {slot(4), ints(columns)}, {5});
  add(&merged, "exp", {slot(5)}, {6});
  merged.set_outputs({6});
  EXPECT_EQ(without_identities(merged), "%5 = view(%1, size=[2, 8])\n%6 = exp(%5)  # drops %1\nread %6\n");
  add(&copied, "t", {slot(1)}, {3});
  add(&copied, "reshape", {slot(3), ints(flat)}, {4});  // in another order
  add(&copied, "view", {slot(4), ints(rows)}, {5});     // with the geometry of the input
  add(&copied, "exp", {slot(5)}, {6});
  copied.set_outputs({6});
  EXPECT_THAT(without_identities(copied), HasSubstr("%6 = exp(%5)"));
  add(&placed, "as_strided", {slot(1), ints(rows), ints({4, 1}), Arg(int64_t{0})}, {3});  // of another run's offset
  add(&placed, "exp", {slot(3)}, {4});
  placed.set_outputs({4});
  EXPECT_THAT(without_identities(placed), HasSubstr("as_strided"));
}

// The Program after fold_constants(), and the values of the constants.
class FoldConstants : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { cpu::register_backend(Dispatcher::instance()); }
  std::string folded(Program program, const Inputs& inputs) {
    constants_ = fold_constants(&program, inputs.metas(), /*grad_enabled=*/false);
    check_program(program, inputs.metas().size() + constants_.values.size());
    return to_string(program);
  }
  std::vector<float> values(size_t i) const {
    const Tensor& value = constants_.values[i];
    return {value.data_as<float>(), value.data_as<float>() + value.numel()};
  }

  static Tensor four_elements() {
    const Inputs inputs(1, {4});
    return Tensor(new TensorImpl(*inputs.metas()[0], Ref<Storage>(new Storage(Device{}, 16))));
  }

  Context context_;
  ContextScope scope_{&context_};
  Constants constants_;
};

TEST_F(FoldConstants, ComputesWhatDependsOnNoInput) {
  const std::vector<int64_t> sizes = {2, 2};
  Program program;
  add(&program, "full", {Arg(absl::Span<const int64_t>(sizes)), Arg(1.0)}, {2});
  add(&program, "tril", {slot(2)}, {3});
  add(&program, "mul", {slot(1), slot(3)}, {4});
  add(&program, "neg", {slot(3)}, {5});
  add(&program, "add", {slot(4), slot(5)}, {6});
  program.set_outputs({6});
  EXPECT_EQ(folded(program, Inputs(1, {2, 2})), "%6 = mul(%1, %2)\n%8 = add(%6, %3)  # drops %1, %2\nread %8\n");
  EXPECT_EQ(values(0), (std::vector<float>{1, 0, 1, 1}));
  EXPECT_EQ(values(1), (std::vector<float>{-1, -0.0F, -1, -1}));
  EXPECT_EQ(constants_.bytes, 32u);
  EXPECT_TRUE(constants_.values[0]->storage->is_read_only());
}

// %1 + full([4], 1) * 2.
Program with_constants() {
  const std::vector<int64_t> sizes = {4};
  Program program;
  add(&program, "full", {Arg(absl::Span<const int64_t>(sizes)), Arg(1.0)}, {2});
  add(&program, "mul", {slot(2), Arg(2.0)}, {3});
  add(&program, "add", {slot(1), slot(3)}, {4});
  program.set_outputs({4});
  return program;
}

TEST_F(FoldConstants, ExplanationsDefineConstants) {
  const DefinedProgram program(with_constants(), {1, 0}, {}, "");
  const Tensor input = four_elements();
  const std::string text = program.explain({absl::MakeConstSpan(&input, 1), {}});
  const size_t folded = text.find("# after fold_constants, which has computed 1 values");
  ASSERT_NE(folded, std::string::npos) << text;
  EXPECT_THAT(text.substr(folded), HasSubstr("\n%2 = constant float32[4]\n%5 = add(%1, %2)"));
  EXPECT_THAT(text.substr(text.rfind("# after")), HasSubstr("%2 = constant float32[4]\n"));
  EXPECT_EQ(text.substr(0, folded).find("constant float32"), std::string::npos);
}

TEST_F(FoldConstants, PassesStopWhenCancelled) {
  Cancellation cancellation;
  const CancellationScope scope(&cancellation);
  Program calls;  // nothing that a pass executes
  add(&calls, "exp", {slot(1)}, {2});
  calls.set_outputs({2});
  const DefinedProgram program(calls, {1, 0, /*exact=*/true}, {}, "");
  const Tensor input = four_elements();
  const ProgramInputs inputs{absl::MakeConstSpan(&input, 1), {}};
  cancellation.request(CancelReason::kEnded);
  EXPECT_THROW(program.explain(inputs), Cancelled);
  EXPECT_THROW(program.run(inputs), Cancelled);
  EXPECT_EQ(program.counters().signatures, 0) << "the passes are not complete";
}

TEST_F(FoldConstants, ViewsShareTheirStorage) {
  const std::vector<int64_t> sizes = {1, 2}, many = {100000, 2};
  Program program;
  add(&program, "full", {Arg(absl::Span<const int64_t>(sizes)), Arg(1.0)}, {2});
  add(&program, "add", {slot(1), slot(2)}, {3});
  add(&program, "expand", {slot(2), Arg(absl::Span<const int64_t>(many))}, {4});
  add(&program, "add", {slot(3), slot(4)}, {5});
  program.set_outputs({5});
  folded(program, Inputs(1, {1, 2}));
  ASSERT_EQ(constants_.values.size(), 2u);
  EXPECT_EQ(constants_.bytes, 8u);
}

TEST_F(FoldConstants, KeepsDrawsOutputsAndWrites) {
  const std::vector<int64_t> sizes = {2};
  const Arg size(absl::Span<const int64_t>{sizes});
  Program drawn, returned, written, uninitialised;
  add(&drawn, "rand", {size}, {2});
  add(&drawn, "add", {slot(1), slot(2)}, {3});
  drawn.set_outputs({3});
  add(&returned, "full", {size, Arg(1.0)}, {2});
  add(&returned, "detach", {slot(2)}, {3});
  add(&returned, "add", {slot(1), slot(2)}, {4});
  returned.set_outputs({3, 4});
  add(&written, "full", {size, Arg(1.0)}, {2});
  add(&written, "detach", {slot(2)}, {3});
  add(&written, "add", {slot(3), slot(1)}, {3}, Instruction::kInto);
  add(&written, "add", {slot(1), slot(2)}, {4});
  written.set_outputs({4});
  add(&uninitialised, "empty", {size}, {2});
  add(&uninitialised, "add", {slot(1), slot(2)}, {3});
  uninitialised.set_outputs({3});
  for (const Program* program : {&drawn, &returned, &written, &uninitialised}) {
    EXPECT_EQ(folded(*program, Inputs(1, {2})), to_string(*program));
    EXPECT_TRUE(constants_.values.empty());
  }
}

TEST_F(FoldConstants, HasLimitsAndLeavesErrorsToRuns) {
  const std::vector<int64_t> large = {Constants::kMaxValueBytes / 4 + 1}, most = {Constants::kMaxValueBytes / 4};
  Program program, many, failing;
  add(&program, "full", {Arg(absl::Span<const int64_t>(large)), Arg(1.0)}, {2});
  add(&program, "add", {slot(1), slot(2)}, {3});
  program.set_outputs({3});
  EXPECT_EQ(folded(program, Inputs(1, {1})), to_string(program));
  Slot last = 1;
  for (int i = 0; i < 5; ++i) {
    add(&many, "full", {Arg(absl::Span<const int64_t>(most)), Arg(static_cast<double>(i))}, {last + 1});
    add(&many, "add", {slot(last), slot(last + 1)}, {last + 2});
    last += 2;
  }
  many.set_outputs({last});
  EXPECT_EQ(folded(many, Inputs(1, {1})), to_string(many));
  EXPECT_TRUE(constants_.too_large);
  Program views;  // small parts of large storages
  last = 1;
  for (int i = 0; i < 5; ++i) {
    add(&views, "full", {Arg(absl::Span<const int64_t>(most)), Arg(static_cast<double>(i))}, {last + 1});
    add(&views, "slice", {slot(last + 1), Arg(int64_t{0}), Arg(int64_t{0}), Arg(int64_t{1}), Arg(int64_t{1})},
        {last + 2});
    add(&views, "add", {slot(last), slot(last + 2)}, {last + 3});
    last += 3;
  }
  views.set_outputs({last});
  EXPECT_EQ(folded(views, Inputs(1, {1})), to_string(views));
  EXPECT_TRUE(constants_.too_large);
  const std::vector<int64_t> sizes = {2};
  add(&failing, "full", {Arg(absl::Span<const int64_t>(sizes)), Arg(1.0)}, {2});
  add(&failing, "full",
      {Arg(absl::Span<const int64_t>(sizes)), Arg(int64_t{7}), Arg(static_cast<int64_t>(DType::kInt64))}, {3});
  add(&failing, "index_select", {slot(2), Arg(int64_t{0}), slot(3)}, {4});  // no such row
  add(&failing, "add", {slot(1), slot(4)}, {5});
  failing.set_outputs({5});
  EXPECT_EQ(folded(failing, Inputs(1, {2})), to_string(failing));
}

TEST(RemoveIdentities, KeepsTheErrorsOfConditions) {
  Program program;
  add(&program, "gt", {slot(2), Arg(0.0)}, {3});
  add(&program, "where", {slot(3), slot(1), slot(1)}, {4});
  add(&program, "mul", {slot(4), Arg(1.0)}, {5});
  add(&program, "expand_as", {slot(5), slot(2)}, {6});
  add(&program, "exp", {slot(6)}, {7});
  program.set_outputs({7});
  EXPECT_EQ(without_identities(program), "%7 = exp(%1)\nread %7\n");
  remove_identities(&program, Inputs(2, {4, 4}).types(program), /*keeps_errors=*/true);
  EXPECT_EQ(to_string(program),
            "%3 = gt(%2, other=0)\n%4 = where(%3, %1, %1)\n%6 = expand_as(%4, %2)\n%7 = exp(%6)\nread %7\n");
}

TEST(RemoveIdentities, KeepsWhatAnOutputIsAViewOf) {
  Program program;
  add(&program, "mul", {slot(1), Arg(1.0)}, {2});
  add(&program, "detach", {slot(2)}, {3});
  program.set_outputs({3});
  const std::string before = to_string(program);
  remove_identities(&program, Inputs(1, {4}).types(program));
  EXPECT_EQ(to_string(program), before);
}

// Queries, keys and values of 2 x 3 heads, and a mask: names 1 to 4.
std::string rewritten_attention(Program program, DType mask = DType::kFloat32, const Sizes& key = {2, 3, 5, 8}) {
  std::vector<TensorMeta> metas(4);
  const Sizes sizes[] = {{2, 3, 4, 8}, key, {2, 3, 5, 6}, {4, 5}};
  std::vector<const TensorMeta*> pointers;
  for (size_t i = 0; i < metas.size(); ++i) {
    metas[i].sizes = sizes[i];
    metas[i].strides = contiguous_strides(sizes[i]);
    pointers.push_back(&metas[i]);
  }
  metas[3].dtype = mask;
  rewrite(&program, ProgramTypes(program, pointers, /*grad_enabled=*/false));
  remove_unused(&program);
  return to_string(program);
}

Arg last_but_one() { return Arg(int64_t{-2}); }
Arg last_dim() { return Arg(int64_t{-1}); }

TEST(Rewrite, AttentionOfNanoGpt) {
  Program program;
  add(&program, "transpose", {slot(2), last_but_one(), last_dim()}, {5});
  add(&program, "matmul", {slot(1), slot(5)}, {6});
  add(&program, "mul", {slot(6), Arg(0.25)}, {7});
  add(&program, "eq", {slot(4), Arg(int64_t{0})}, {8});
  add(&program, "masked_fill", {slot(7), slot(8), Arg(-HUGE_VAL)}, {9});
  add(&program, "softmax", {slot(9), last_dim()}, {10});
  add(&program, "matmul", {slot(10), slot(3)}, {11});
  program.set_outputs({11});
  EXPECT_EQ(rewritten_attention(program),
            "%8 = eq(%4, other=0)\n%11 = softmax_attention(%1, %2, %3, %8, scale=0.25)  # drops %4\nread %11\n");
}

TEST(Rewrite, AttentionOfHuggingFace) {
  Program program;
  add(&program, "transpose", {slot(2), Arg(int64_t{2}), Arg(int64_t{3})}, {5});
  add(&program, "matmul", {slot(1), slot(5)}, {6});
  add(&program, "mul", {slot(6), Arg(0.25)}, {7});
  add(&program, "add", {slot(7), slot(4)}, {8});
  add(&program, "softmax", {slot(8), last_dim(), Arg(static_cast<int64_t>(DType::kFloat32))}, {9});
  add(&program, "matmul", {slot(9), slot(3)}, {10});
  program.set_outputs({10});
  EXPECT_EQ(rewritten_attention(program), "%10 = softmax_attention(%1, %2, %3, %4, scale=0.25)\nread %10\n");
}

TEST(Rewrite, AttentionWithOtherScalesAndTransposes) {
  const std::vector<int64_t> swap = {0, 1, 3, 2}, other = {0, 2, 3, 1};
  const auto ending = [](Program program, Slot scores) {
    add(&program, "softmax", {slot(scores), last_dim()}, {20});
    add(&program, "matmul", {slot(20), slot(3)}, {21});
    program.set_outputs({21});
    return program;
  };
  Program unscaled, scaled_query, both, transposed, permuted;
  add(&unscaled, "permute", {slot(2), Arg(absl::Span<const int64_t>(swap))}, {5});
  add(&unscaled, "matmul", {slot(1), slot(5)}, {6});
  EXPECT_EQ(rewritten_attention(ending(unscaled, 6)),
            "%21 = softmax_attention(%1, %2, %3, attn_mask=None, scale=1)\nread %21\n");
  add(&scaled_query, "div", {slot(1), Arg(4.0)}, {5});
  add(&scaled_query, "transpose", {slot(2), last_dim(), last_but_one()}, {6});
  add(&scaled_query, "matmul", {slot(5), slot(6)}, {7});
  EXPECT_THAT(rewritten_attention(ending(scaled_query, 7)), HasSubstr("attention(%1, %2, %3"));
  add(&both, "mul", {slot(1), Arg(0.5)}, {5});
  add(&both, "mul", {slot(2), Arg(0.5)}, {6});
  add(&both, "transpose", {slot(6), last_but_one(), last_dim()}, {7});
  add(&both, "matmul", {slot(5), slot(7)}, {8});
  EXPECT_THAT(rewritten_attention(ending(both, 8)), HasSubstr("attn_mask=None, scale=0.25)"));
  add(&transposed, "matmul", {slot(1), slot(2)}, {5});
  EXPECT_EQ(rewritten_attention(ending(transposed, 5), DType::kFloat32, {2, 3, 8, 5}),
            "%22 = transpose(%2, dim0=-2, dim1=-1)\n"
            "%21 = softmax_attention(%1, %22, %3, attn_mask=None, scale=1)  # drops %2\nread %21\n");
  add(&permuted, "permute", {slot(2), Arg(absl::Span<const int64_t>(other))}, {5});  // from (batch, rows, heads, depth)
  add(&permuted, "matmul", {slot(1), slot(5)}, {6});
  EXPECT_EQ(rewritten_attention(ending(permuted, 6), DType::kFloat32, {2, 5, 3, 8}),
            "%5 = permute(%2, dims=[0, 2, 3, 1])\n%22 = transpose(%5, dim0=-2, dim1=-1)  # drops %2\n"
            "%21 = softmax_attention(%1, %22, %3, attn_mask=None, scale=1)  # drops %5\nread %21\n");
}

TEST(Rewrite, AttentionWhereSelectsAndFactorsThatOthersRead) {
  Program program, read;
  add(&program, "transpose", {slot(2), last_but_one(), last_dim()}, {5});
  add(&program, "matmul", {slot(1), slot(5)}, {6});
  add(&program, "where", {slot(4), slot(6), Arg(-HUGE_VAL)}, {7});
  add(&program, "softmax", {slot(7), last_dim()}, {8});
  add(&program, "matmul", {slot(8), slot(3)}, {9});
  program.set_outputs({9});
  EXPECT_EQ(rewritten_attention(program, DType::kBool),
            "%10 = logical_not(%4)\n%9 = softmax_attention(%1, %2, %3, %10, scale=1)  # drops %4\nread %9\n");
  add(&read, "mul", {slot(1), Arg(0.25)}, {5});
  add(&read, "transpose", {slot(2), last_but_one(), last_dim()}, {6});
  add(&read, "matmul", {slot(5), slot(6)}, {7});
  add(&read, "softmax", {slot(7), last_dim()}, {8});
  add(&read, "matmul", {slot(8), slot(3)}, {9});
  read.set_outputs({5, 9});
  EXPECT_THAT(rewritten_attention(read), HasSubstr("attention(%5, %2, %3"));
}

TEST(Rewrite, CrossEntropyWithItsArguments) {
  Program program;
  add(&program, "log_softmax", {slot(1), Arg(int64_t{1})}, {4});
  add(&program, "nll_loss", {slot(4), slot(2), slot(3), Arg(int64_t{1}), Arg(std::string_view("none"))}, {5});
  program.set_outputs({5});
  std::vector<TensorMeta> metas(3);
  metas[0].sizes = {4, 6};
  metas[0].strides = {6, 1};
  metas[1].sizes = {4};
  metas[1].strides = {1};
  metas[1].dtype = DType::kInt64;
  metas[2].sizes = {6};
  metas[2].strides = {1};
  const TensorMeta* const pointers[] = {&metas[0], &metas[1], &metas[2]};
  rewrite(&program, ProgramTypes(program, pointers, /*grad_enabled=*/false));
  EXPECT_EQ(to_string(program), "%5 = cross_entropy(%1, %2, %3, ignore_index=1, reduction='none')\nread %5\n");
}

Arg slots(absl::Span<const Slot> names) {
  Arg arg;
  arg.kind = Arg::Kind::kSlots;
  arg.size = static_cast<uint32_t>(names.size());
  arg.slots = names.data();
  return arg;
}

// Rules of losses apply to the largest expressions first, and read what they add.
TEST(Rewrite, CrossEntropyOfIndexedRows) {
  constexpr Slot kIndices[] = {3, 2};
  const auto rewritten = [&](int64_t rows, bool reads_losses) {
    Program program;
    add(&program, "arange", {Arg(rows)}, {3});
    add(&program, "log_softmax", {slot(1), Arg(int64_t{-1})}, {4});
    add(&program, "index", {slot(4), slots(kIndices)}, {5});
    add(&program, "neg", {slot(5)}, {6});
    add(&program, "mean", {slot(6)}, {7});
    program.set_outputs(reads_losses ? std::vector<Slot>{6, 7} : std::vector<Slot>{7});
    std::vector<TensorMeta> metas(2);
    metas[0].sizes = {4, 6};
    metas[0].strides = {6, 1};
    metas[1].sizes = {4};
    metas[1].strides = {1};
    metas[1].dtype = DType::kInt64;
    const TensorMeta* const pointers[] = {&metas[0], &metas[1]};
    rewrite(&program, ProgramTypes(program, pointers, /*grad_enabled=*/false));
    return to_string(program);
  };
  const std::string text = rewritten(4, false), losses = rewritten(4, true);
  EXPECT_THAT(text, HasSubstr("index("));
  EXPECT_THAT(text, HasSubstr("%7 = cross_entropy(%1, %"));
  EXPECT_THAT(text, HasSubstr("reduction='mean'"));
  EXPECT_THAT(text, testing::Not(HasSubstr("log_softmax")));
  EXPECT_THAT(losses, HasSubstr("%6 = cross_entropy(%1, %"));
  EXPECT_THAT(losses, HasSubstr("%7 = mean(%6)"));
  EXPECT_THAT(rewritten(1, false), HasSubstr("log_softmax")) << "classes of one row";
}

// %1 * sigmoid(%1), of which the same is computed, and so on.
Program silus(Slot count) {
  Program program;
  for (Slot k = 0; k < count; ++k) {
    add(&program, "sigmoid", {slot(2 * k + 1)}, {2 * k + 2});
    add(&program, "mul", {slot(2 * k + 1), slot(2 * k + 2)}, {2 * k + 3});
  }
  program.set_outputs({2 * count + 1});
  return program;
}

// With work for the whole Program at every match, this test would run for minutes.
TEST(Rewrite, ThousandsOfMatches) {
  constexpr Slot kCount = 30'000;
  Program program = silus(kCount);
  EXPECT_EQ(rewrite(&program, Inputs(1, {4}).types(program)), kCount);
  ASSERT_EQ(program.instructions().size(), kCount);
  for (Slot k = 0; k < kCount; ++k) {
    const Instruction& call = program.instructions()[k];
    ASSERT_EQ(call.op, find_op("silu"));
    ASSERT_EQ(call.args[0].slot, 2 * k + 1);
    ASSERT_EQ(call.results[0], 2 * k + 3);
  }
}

TEST(Rewrite, ThousandsOfMatchesThatReadTheSameValue) {
  constexpr Slot kCount = 20'000;
  Program program;
  for (Slot k = 0; k < kCount; ++k) {
    add(&program, "sigmoid", {slot(1)}, {3 * k + 2});
    add(&program, "mul", {slot(3 * k + 2), slot(1)}, {3 * k + 3});
    add(&program, "add", {slot(k == 0 ? 1 : 3 * k + 1), slot(3 * k + 3)}, {3 * k + 4});
  }
  program.set_outputs({3 * kCount + 1});
  EXPECT_EQ(rewrite(&program, Inputs(1, {4}).types(program)), kCount);
  EXPECT_EQ(program.instructions().size(), 2 * kCount);
}

// Each match adds a call with a new name.
TEST(Rewrite, ThousandsOfAttentions) {
  constexpr Slot kCount = 4000;
  Program program;
  for (Slot k = 0; k < kCount; ++k) {
    const Slot first = 4 * k + 2;
    add(&program, "matmul", {slot(k == 0 ? 1 : first - 1), slot(1)}, {first});
    add(&program, "mul", {slot(first), Arg(0.5)}, {first + 1});
    add(&program, "softmax", {slot(first + 1), Arg(int64_t{-1})}, {first + 2});
    add(&program, "matmul", {slot(first + 2), slot(1)}, {first + 3});
  }
  program.set_outputs({4 * kCount + 1});
  EXPECT_EQ(rewrite(&program, Inputs(1, {2, 4, 4}).types(program)), kCount);
  ASSERT_EQ(program.instructions().size(), 2 * kCount);
  for (Slot k = 0; k < kCount; ++k) {
    const Instruction &keys = program.instructions()[2 * k], &call = program.instructions()[2 * k + 1];
    ASSERT_EQ(keys.op, find_op("transpose"));
    ASSERT_EQ(keys.results[0], 4 * kCount + 2 + k);
    ASSERT_EQ(call.op, find_op("softmax_attention"));
    ASSERT_EQ(call.args[1].slot, keys.results[0]);
    ASSERT_EQ(call.results[0], 4 * k + 5);
  }
}

// The mask is the factor of the scores, which stays although the match contains it.
TEST(Rewrite, KeepsAPartThatTheOperatorReads) {
  Program program;
  add(&program, "mul", {slot(1), Arg(0.5)}, {2});
  add(&program, "matmul", {slot(2), slot(1)}, {3});
  add(&program, "add", {slot(3), slot(2)}, {4});
  add(&program, "softmax", {slot(4), Arg(int64_t{-1})}, {5});
  add(&program, "matmul", {slot(5), slot(1)}, {6});
  program.set_outputs({6});
  EXPECT_EQ(rewrite(&program, Inputs(1, {2, 4, 4}).types(program)), 1u);
  EXPECT_EQ(to_string(program),
            "%2 = mul(%1, other=0.5)\n%7 = transpose(%1, dim0=-2, dim1=-1)\n"
            "%6 = softmax_attention(%1, %7, %1, %2, scale=0.5)\nread %6\n");
}

// The product is a factor of the queries and of the keys: two calls of the pattern. `also` reads it, too.
TEST(Rewrite, OneInstructionForTwoCallsOfAPattern) {
  const auto rewritten = [](bool also) {
    Program program;
    add(&program, "mul", {slot(1), Arg(0.5)}, {2});
    add(&program, "transpose", {slot(2), Arg(int64_t{-2}), Arg(int64_t{-1})}, {3});
    add(&program, "matmul", {slot(2), slot(3)}, {4});
    add(&program, "softmax", {slot(4), Arg(int64_t{-1})}, {5});
    add(&program, "matmul", {slot(5), slot(1)}, {6});
    if (also) add(&program, "neg", {slot(2)}, {7});
    add(&program, "add", {slot(6), slot(also ? 7 : 1)}, {8});
    program.set_outputs({8});
    EXPECT_EQ(rewrite(&program, Inputs(1, {2, 4, 4}).types(program)), 1u);
    return to_string(program);
  };
  EXPECT_EQ(rewritten(false),
            "%6 = softmax_attention(%1, %1, %1, attn_mask=None, scale=0.25)\n%8 = add(%6, %1)\nread %8\n");
  EXPECT_THAT(rewritten(true), HasSubstr("%6 = softmax_attention(%2, %2, %1, attn_mask=None, scale=1)\n"));
}

TEST(Rewrite, KeepsLogarithmsOfSoftmax) {
  Program program;
  add(&program, "softmax", {slot(1), Arg(int64_t{1})}, {3});
  add(&program, "log", {slot(3)}, {4});
  add(&program, "nll_loss", {slot(4), slot(2)}, {5});
  program.set_outputs({5});
  std::vector<TensorMeta> metas(2);
  metas[0].sizes = {4, 6};
  metas[0].strides = {6, 1};
  metas[1].sizes = {4};
  metas[1].strides = {1};
  metas[1].dtype = DType::kInt64;
  const TensorMeta* const pointers[] = {&metas[0], &metas[1]};
  EXPECT_EQ(rewrite(&program, ProgramTypes(program, pointers, /*grad_enabled=*/false)), 0u);
}

TEST(Rewrite, StopsWhenCancelled) {
  Cancellation cancellation;
  const CancellationScope scope(&cancellation);
  Program program = silus(4);
  const ProgramTypes types = Inputs(1, {4}).types(program);
  cancellation.request(CancelReason::kTimeLimit);
  EXPECT_THROW(rewrite(&program, types), Cancelled);
  cancellation.reset();
  EXPECT_EQ(rewrite(&program, types), 4u);
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
