// Calls that linear layers and convolutions take, and the layout between them, by the text of Programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/program/passes/fuse_convolutions.h"
#include "engine/program/passes/fuse_linear.h"
#include "engine/program/passes/keep_channels_last.h"
#include "tests/engine/program/calls.h"

namespace tt {
namespace {

using testing::add;
using ::testing::HasSubstr;
using testing::InputMetas;
using testing::slot;
using testing::without_unused;

// gelu(%3 + linear(%1, %2)), and perhaps another reader of the layer's result.
std::string linear_layer(bool is_read_twice, const Sizes& rows) {
  Program program;
  add(&program, "linear", {slot(1), slot(2)}, {6});
  add(&program, "add", {slot(3), slot(6)}, {7});
  add(&program, "gelu_erf", {slot(7)}, {8});
  if (is_read_twice) add(&program, "neg", {slot(6)}, {9});
  is_read_twice ? program.set_outputs({8, 9}) : program.set_outputs({8});
  const InputMetas inputs(Sizes{rows[0], 80}, Sizes{128, 80}, Sizes{rows[0], 128});
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
    fuse_linear(&program, InputMetas(Sizes{64, 80}, Sizes{128, 80}).types(program));
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
  fuse_linear(&program, InputMetas(Sizes{64, 80}, Sizes{128, 80}, Sizes{64, 80}).types(program));
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

std::string convolved(Program program, const InputMetas& inputs) {
  fuse_convolutions(&program, inputs.types(program));
  return to_string(program);
}

TEST(FuseConvolutions, TakesWhatFollows) {
  const InputMetas inputs(kImage, kWeight, kChannels, kResult);
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
  const std::string text = convolved(program, InputMetas(kImage, kWeight, kChannels));
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
  const InputMetas inputs(kImage, kWeight, kChannels, kResult);
  EXPECT_EQ(convolved(training, inputs), to_string(training));  // it writes its running statistics
  for (const Program* program : {&scaled, &twice}) {
    EXPECT_EQ(convolved(*program, inputs), without_unused(*program));
  }
}

std::string laid_out(const Program& program, const InputMetas& inputs, bool exact = false) {
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
  EXPECT_EQ(laid_out(program, InputMetas(kImage, kWeight, Sizes{5, 4, 3, 3})),
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
  const InputMetas inputs(kImage, kWeight);
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
  const InputMetas inputs(kImage, kWeight);
  EXPECT_EQ(laid_out(alone, inputs), to_string(alone));  // nothing else would read its result as it is
  EXPECT_THAT(laid_out(read, inputs), HasSubstr("%11 = contiguous(%9)\n%12 = contiguous(%10)"));
}

}  // namespace
}  // namespace tt
