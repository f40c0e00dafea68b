// Shapes, dtypes and errors of reductions, products, convolutions, pooling, norms and losses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/schema/rule_runner.h"

namespace tt {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class LayerRulesTest : public testing::Test {
 protected:
  RuleRunner infer_;
  Arg t(std::initializer_list<int64_t> sizes, DType dtype = DType::kFloat32) {
    return infer_.tensor(Sizes(sizes), dtype);
  }
  Arg n(std::initializer_list<int64_t> list) { return infer_.ints(list); }
};

TEST_F(LayerRulesTest, ReductionsDropOrKeepDimensions) {
  EXPECT_EQ(infer_("sum", {t({2, 3, 4})}), "float32[]");
  EXPECT_EQ(infer_("sum", {t({2, 3, 4}), n({})}), "float32[]");
  EXPECT_EQ(infer_("sum", {t({2, 3, 4}), n({0, -1})}), "float32[3]");
  EXPECT_EQ(infer_("sum", {t({2, 3, 4}), n({0, -1}), true}), "float32[1, 3, 1]");
  EXPECT_EQ(infer_("sum", {t({}), n({-1})}), "float32[]");
  EXPECT_EQ(infer_("sum", {t({2}, DType::kBool)}), "int64[]");
  EXPECT_EQ(infer_("max_dim", {t({2, 3}), int64_t{1}}), "float32[2] int64[2]");
  EXPECT_EQ(infer_("any", {t({2, 3}, DType::kUInt8)}), "uint8[]");
}

TEST_F(LayerRulesTest, ReductionsRejectInvalidDimensions) {
  EXPECT_THAT(infer_("sum", {t({3, 4}), n({2})}), StartsWith("IndexError: [sum] Dimension out of range"));
  EXPECT_THAT(infer_("sum", {t({3, 4}), n({0, -2})}), HasSubstr("dim 0 appears multiple times"));
  EXPECT_THAT(infer_("amax", {t({0, 2}), n({0})}), StartsWith("IndexError: [amax] Expected reduction dim 0"));
  EXPECT_EQ(infer_("amax", {t({0, 2}), n({1})}), "float32[0]");
  EXPECT_THAT(infer_("max_all", {t({0})}),
              StartsWith("RuntimeError: [max_all] Expected reduction dim to be specified"));
  EXPECT_THAT(infer_("mean", {t({2}, DType::kInt64)}), HasSubstr("Got: Long"));
  EXPECT_THAT(infer_("prod", {t({2, 2}), n({0, 1})}), StartsWith("TypeError"));
}

TEST_F(LayerRulesTest, MatmulBroadcastsBatchesAndAcceptsVectors) {
  EXPECT_EQ(infer_("matmul", {t({4}), t({4})}), "float32[]");
  EXPECT_EQ(infer_("matmul", {t({2, 1, 3, 4}), t({5, 4, 2})}), "float32[2, 5, 3, 2]");
  EXPECT_EQ(infer_("matmul", {t({2, 3, 4}), t({4})}), "float32[2, 3]");
  EXPECT_EQ(infer_("matmul", {t({4}), t({2, 4, 3})}), "float32[2, 3]");
  EXPECT_EQ(infer_("matmul", {t({2, 0}), t({0, 3})}), "float32[2, 3]");
  EXPECT_THAT(infer_("matmul", {t({3, 4}), t({3, 4})}), HasSubstr("cannot be multiplied (3x4 and 3x4)"));
  EXPECT_THAT(infer_("matmul", {t({2, 2}), t({2, 2}, DType::kFloat64)}), HasSubstr("float != double"));
  EXPECT_EQ(infer_("linear", {t({2, 3, 4}), t({5, 4}), t({5})}), "float32[2, 3, 5]");
  EXPECT_THAT(infer_("linear", {t({2, 4}), t({5, 3})}), HasSubstr("cannot be multiplied (2x4 and 3x5)"));
  EXPECT_THAT(infer_("addmm", {t({2}), t({3, 4}), t({4, 5})}), StartsWith("RuntimeError"));
}

TEST_F(LayerRulesTest, ConvolutionsComputeOutputSizes) {
  EXPECT_EQ(infer_("conv2d", {t({2, 3, 7, 9}), t({4, 3, 3, 2}), t({4})}), "float32[2, 4, 5, 8]");
  EXPECT_EQ(infer_("conv2d", {t({3, 7, 9}), t({4, 3, 3, 3}), Arg(), n({2, 1}), n({1, 0}), n({1, 2})}),
            "float32[4, 4, 5]");
  EXPECT_EQ(infer_("conv1d", {t({2, 4, 8}), t({6, 2, 3}), Arg(), n({1}), n({0}), n({1}), int64_t{2}}),
            "float32[2, 6, 6]");
  EXPECT_EQ(infer_("conv_transpose2d", {t({1, 3, 4, 4}), t({3, 2, 3, 3}), Arg(), n({2, 2}), n({1, 1}), n({1, 1})}),
            "float32[1, 2, 8, 8]");
  EXPECT_THAT(infer_("conv2d", {t({2, 3, 5, 5}), t({4, 2, 3, 3})}),
              HasSubstr("to have 2 channels, but got 3 channels"));
  EXPECT_THAT(infer_("conv2d", {t({1, 3, 2, 2}), t({4, 3, 3, 3})}), HasSubstr("Kernel size can't be greater"));
  EXPECT_THAT(infer_("conv2d", {t({1, 3, 5, 5}), t({4, 3, 3, 3}), Arg(), n({0, 1})}), HasSubstr("stride"));
}

TEST_F(LayerRulesTest, ConvolutionGradientsHaveArgumentSizes) {
  const Arg one = n({1, 1}), none = n({0, 0});
  EXPECT_EQ(
      infer_("convolution_input", {t({2, 4, 5, 5}), t({4, 3, 3, 3}), n({2, 3, 7, 7}), one, none, one, int64_t{1}}),
      "float32[2, 3, 7, 7]");
  EXPECT_THAT(
      infer_("convolution_weight", {t({2, 4, 6, 5}), t({2, 3, 7, 7}), n({4, 3, 3, 3}), one, none, one, int64_t{1}}),
      HasSubstr("Expected a gradient of size [2, 4, 5, 5]"));
}

TEST_F(LayerRulesTest, RejectsWindowsLargerThanInput) {
  EXPECT_EQ(infer_("max_pool2d", {t({2, 3, 5, 5}), n({2, 2})}), "float32[2, 3, 2, 2]");
  EXPECT_EQ(infer_("max_pool2d", {t({3, 5, 5}), n({2, 2}), Arg(), n({0, 0}), n({1, 1}), true}), "float32[3, 3, 3]");
  // With ceil_mode the last window must still start inside the input or its left padding.
  EXPECT_EQ(infer_("avg_pool2d", {t({1, 1, 4, 4}), n({1, 1}), n({3, 3}), n({0, 0}), true}), "float32[1, 1, 2, 2]");
  EXPECT_EQ(infer_("avg_pool2d", {t({1, 1, 3, 3}), n({2, 2}), n({2, 2}), n({1, 1}), true}), "float32[1, 1, 2, 2]");
  // A window may be larger than the input.
  EXPECT_EQ(infer_("avg_pool2d", {t({1, 1, 2, 2}), n({3, 3}), n({2, 2}), n({0, 0}), true}), "float32[1, 1, 1, 1]");
  EXPECT_EQ(infer_("max_pool2d", {t({1, 2, 2}), n({9, 9}), n({10, 10}), n({0, 0}), n({1, 1}), true}),
            "float32[1, 1, 1]");
  EXPECT_THAT(infer_("max_pool2d", {t({1, 2, 2}), n({5, 5}), n({3, 3}), n({0, 0}), n({1, 1}), true}),
              HasSubstr("Calculated output size is too small"));
  EXPECT_THAT(infer_("max_pool2d", {t({1, 4, 4}), n({2, 2}), Arg(), n({2, 2})}),
              HasSubstr("pad should be at most half"));
  EXPECT_THAT(infer_("max_pool2d", {t({4, 4}), n({2, 2})}), HasSubstr("Expected 3D or 4D"));
  EXPECT_THAT(infer_("max_pool2d", {t({1, 2, 2}), n({3, 3})}), HasSubstr("Calculated output size is too small"));
  EXPECT_EQ(infer_("adaptive_avg_pool2d", {t({2, 3, 5, 7}), n({1, 2})}), "float32[2, 3, 1, 2]");
}

TEST_F(LayerRulesTest, VolumesAndPatches) {
  EXPECT_EQ(infer_("conv3d", {t({1, 2, 4, 3, 5}), t({3, 2, 2, 2, 3})}), "float32[1, 3, 3, 2, 3]");
  EXPECT_EQ(infer_("max_pool3d", {t({2, 5, 4, 5}), n({3, 3, 3}), n({1, 1, 1}), n({1, 1, 1})}), "float32[2, 5, 4, 5]");
  EXPECT_EQ(infer_("adaptive_avg_pool3d", {t({2, 5, 4, 3}), n({2, 3, 1})}), "float32[2, 2, 3, 1]");
  EXPECT_EQ(infer_("im2col", {t({2, 3, 4, 5}), n({2, 3})}), "float32[2, 18, 9]");
  EXPECT_EQ(infer_("col2im", {t({2, 18, 9}), n({4, 5}), n({2, 3})}), "float32[2, 3, 4, 5]");
  EXPECT_THAT(infer_("col2im", {t({1, 5, 4}), n({4, 4}), n({2, 2}), n({1, 1}), n({0, 0}), n({2, 2})}),
              HasSubstr("to be divisible by the product of kernel_size"));
  EXPECT_EQ(infer_("interpolate", {t({1, 2, 3, 4}), n({6, 8})}), "float32[1, 2, 6, 8]");
  EXPECT_THAT(infer_("interpolate", {t({1, 2, 3, 4}), n({6, 8}), std::string_view("linear")}),
              StartsWith("NotImplementedError: [interpolate] Got 4D input, but linear mode needs 3D input"));
  EXPECT_THAT(infer_("interpolate", {t({1, 2, 3, 4}), n({6})}), StartsWith("ValueError"));
}

TEST_F(LayerRulesTest, ChecksVectorLengths) {
  EXPECT_EQ(infer_("cdist", {t({2, 3, 4}), t({5, 4})}), "float32[2, 3, 5]");
  EXPECT_THAT(infer_("cross", {t({2, 4}), t({2, 4})}), HasSubstr("must have length 3. Got 4 and 4"));
  EXPECT_EQ(infer_("diff", {t({2, 1}), int64_t{3}}), "float32[2, 0]");
}

TEST_F(LayerRulesTest, NormsCheckTheirParameters) {
  EXPECT_EQ(infer_("layer_norm_forward", {t({2, 3, 4}, DType::kBFloat16), n({3, 4}), Arg(), Arg(), 1e-5}),
            "bfloat16[2, 3, 4] float32[2] float32[2]");
  EXPECT_THAT(infer_("layer_norm", {t({3, 4}), n({3})}),
              HasSubstr("expected input with shape [*, 3], but got input of size[3, 4]"));
  EXPECT_THAT(infer_("batch_norm", {t({4, 3}), t({2}), t({3})}),
              HasSubstr("running_mean should contain 3 elements not 2"));
  EXPECT_THAT(infer_("batch_norm", {t({4, 3}), Arg(), Arg()}), HasSubstr("must be defined in evaluation mode"));
  EXPECT_EQ(infer_("batch_norm", {t({4, 3}, DType::kFloat16), Arg(), Arg(), t({3}), t({3}), true}), "float16[4, 3]");
  EXPECT_THAT(infer_("batch_norm", {t({4, 3}), Arg(), Arg(), t({3}, DType::kFloat64), Arg(), true}),
              HasSubstr("expected scalar type Float but found Double"));
  EXPECT_THAT(infer_("group_norm", {t({2, 5, 3}), int64_t{2}}), HasSubstr("divisible by num_groups"));
}

// Not exposed in Python, but a frame may contain them with any arguments.
TEST_F(LayerRulesTest, ChecksGradientSizes) {
  EXPECT_THAT(infer_("softmax_backward", {t({3, 4}), t({3, 4}), int64_t{7}}), StartsWith("IndexError"));
  EXPECT_THAT(infer_("softmax_backward", {t({3, 4}), t({3, 5}), int64_t{0}}), HasSubstr("Expected a gradient of size"));
  EXPECT_THAT(infer_("layer_norm_backward", {t({3, 4}), t({3, 4}), t({3}), t({3}), t({3}), n({4})}),
              HasSubstr("Expected weight to be of same shape as normalized_shape"));
  EXPECT_THAT(infer_("group_norm_backward", {t({2, 4}), t({2, 4}), Arg(), t({2, 1}), t({2, 1}), int64_t{0}}),
              HasSubstr("divisible by num_groups"));
  EXPECT_THAT(infer_("batch_norm_backward", {t({2, 4}), t({2, 4}), Arg(), t({3}), t({4}), true}),
              HasSubstr("should contain 4 elements not 3"));
  EXPECT_THAT(infer_("max_pool2d_backward", {t({1, 2, 2}), t({1, 2, 2}), n({1, 4, 4})}), HasSubstr("Long, got Float"));
}

TEST_F(LayerRulesTest, LossesReduceOrNot) {
  const Arg target = t({2, 4}, DType::kInt64);
  EXPECT_EQ(infer_("cross_entropy", {t({2, 3, 4}), target}), "float32[]");
  EXPECT_EQ(infer_("cross_entropy", {t({2, 3, 4}), target, Arg(), int64_t{-100}, std::string_view("none")}),
            "float32[2, 4]");
  EXPECT_THAT(infer_("nll_loss", {t({5, 3}), target}),
              StartsWith("ValueError: [nll_loss] Expected input batch_size (5)"));
  EXPECT_THAT(infer_("nll_loss", {t({2, 3, 4}), t({2, 4})}), HasSubstr("expected scalar type Long but found Float"));
  EXPECT_THAT(infer_("mse_loss", {t({3}), t({3}), std::string_view("avg")}),
              StartsWith("ValueError: [mse_loss] avg is not a valid value for reduction"));
  EXPECT_EQ(infer_("kl_div", {t({3, 2}), t({3, 2}), std::string_view("batchmean")}), "float32[]");
}

TEST_F(LayerRulesTest, PaddingExtendsAndCrops) {
  EXPECT_EQ(infer_("pad", {t({3, 4}), n({1, 2, -1, 0})}), "float32[2, 7]");
  EXPECT_THAT(infer_("pad", {t({3}), n({1})}), HasSubstr("Length of pad must be even"));
  EXPECT_THAT(infer_("pad", {t({3}), n({-2, -2})}), HasSubstr("negative output size"));
  EXPECT_THAT(infer_("pad", {t({3}), n({-5, 4})}), HasSubstr("negative output size"));
  EXPECT_THAT(infer_("pad", {t({3}), n({INT64_MAX, INT64_MAX})}), HasSubstr("negative output size"));
}

TEST_F(LayerRulesTest, OptimizerStepsCheckListEntries) {
  const Arg two = infer_.tensors({t({3}), t({2, 2})}), same = infer_.tensors({t({3}), t({2, 2})});
  const Arg other = infer_.tensors({t({3}), t({4})}), one = infer_.tensors({t({3})}), none = infer_.tensors({});
  auto sgd = [&](Arg grads, Arg buffers, double momentum) {
    return infer_("sgd_step", {two, grads, buffers, 0.1, momentum, 0.0, 0.0, false, false, true});
  };
  EXPECT_EQ(sgd(same, none, 0), "");
  EXPECT_EQ(sgd(same, same, 0.9), "");
  EXPECT_THAT(sgd(one, none, 0), HasSubstr("expected as many gradients as parameters, got 1 for 2 parameters"));
  EXPECT_THAT(sgd(same, none, 0.9), HasSubstr("expected as many momentum_buffers"));
  EXPECT_THAT(sgd(other, none, 0), HasSubstr("to have its parameter's sizes [2, 2], got [4]"));
}

}  // namespace
}  // namespace tt
