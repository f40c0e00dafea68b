// Regressions found with random arguments: each call ended the process, or failed where PyTorch returns a result.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/autograd/fixture.h"

namespace tt::autograd::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tt::testing::constant;
using tt::testing::filled;
using tt::testing::values;

class ExtremeKernelsTest : public AutogradTest {};

Tensor overlapping(const Tensor& storage, Sizes sizes, Sizes strides) {
  return view_of(storage, Geometry{std::move(sizes), std::move(strides), 0, true});
}

TEST_F(ExtremeKernelsTest, IntegerDivisionDoesNotTrap) {
  constexpr DType kIntegers[] = {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64};
  for (DType dtype : kIntegers) {
    const int64_t least = -(int64_t{1} << (8 * item_size(dtype) - 2)) * 2;
    for (int64_t a : {least, least + 1, int64_t{-1}, int64_t{0}, int64_t{11}}) {
      for (int64_t b : {least, least + 1, int64_t{-1}, int64_t{3}, int64_t{11}}) {
        const Tensor x = scalar_tensor(a, dtype, Device{}), y = scalar_tensor(b, dtype, Device{});
        ops::gcd(x, y);
        ops::lcm(x, y);
        ops::remainder(x, y);
        ops::fmod(x, y);
        ops::floor_divide(x, y);
      }
    }
  }
  const Tensor lcm = ops::lcm(scalar_tensor(std::numeric_limits<int64_t>::min(), DType::kInt64, Device{}),
                              scalar_tensor(int64_t{-1}, DType::kInt64, Device{}));
  EXPECT_EQ(lcm.data_as<int64_t>()[0], std::numeric_limits<int64_t>::min());
}

TEST_F(ExtremeKernelsTest, EmptyIndexOfAnotherRankHasGradients) {
  for (bool prod : {false, true}) {
    const Tensor input = leaf({1, 1}, {2}), src = leaf({2, 3}, {1, 2, 3, 4, 5, 6});
    const Tensor index = empty({0}, DType::kInt64, Device{});
    const Tensor result =
        prod ? ops::scatter_combine(input, 1, index, src, "prod") : ops::scatter_add(input, 1, index, src);
    backward(ops::sum(result, std::nullopt, false, std::nullopt));
    EXPECT_THAT(grad_of(input), ElementsAre(1));
    EXPECT_THAT(grad_of(src), ElementsAre(0, 0, 0, 0, 0, 0));
  }
}

TEST_F(ExtremeKernelsTest, TakeAlongZeroDimTensorFails) {
  const Tensor x = scalar_tensor(1.0, DType::kFloat32, Device{}),
               i = scalar_tensor(int64_t{0}, DType::kInt64, Device{});
  EXPECT_THAT(error_of([&] { ops::take_along_dim(x, i, 0); }), HasSubstr("has no dimensions"));
}

TEST_F(ExtremeKernelsTest, InvalidGateWeightsFail) {
  const Tensor x = filled({4, 2, 3}), h = filled({1, 2, 2});
  EXPECT_THAT(error_of([&] {
                ops::gru(x, h, {filled({0, 3}), filled({2})}, {}, false, 1, 0.0, true, false, false);
              }),
              HasSubstr("expected weights for 3 gates"));
}

TEST_F(ExtremeKernelsTest, ConvolutionsAcceptOverlappingStrides) {
  const Tensor storage = filled({200});
  const Tensor x = overlapping(storage, {2, 4, 5}, {3, 3, 4}), w = filled({4, 3, 3}), bias = filled({3});
  const int64_t stride[] = {2}, padding[] = {1}, output_padding[] = {1}, dilation[] = {1};
  const Tensor got = ops::conv_transpose1d(x, w, bias, stride, padding, output_padding, 1, dilation);
  const Tensor want = ops::conv_transpose1d(ops::clone(x), w, bias, stride, padding, output_padding, 1, dilation);
  tt::testing::expect_close(got, want, 1e-6);
}

TEST_F(ExtremeKernelsTest, ProductsAcceptOverlappingStrides) {
  const Tensor storage = filled({64 * 64 + 200});
  const Tensor a = overlapping(storage, {3, 64, 64}, {7, 64, 1}), b = filled({3, 64, 64});
  tt::testing::expect_close(ops::matmul(a, b), ops::matmul(ops::clone(a), b), 1e-5);
}

TEST_F(ExtremeKernelsTest, PoolingStrideDefaultsToKernelSize) {
  const Tensor x = filled({1, 2, 4, 4, 4});
  const int64_t two[] = {2, 2, 2}, none[] = {0, 0, 0}, one[] = {1, 1, 1};
  const absl::Span<const int64_t> empty_list;
  tt::testing::expect_close(ops::max_pool3d(x, two, empty_list, none, one, false),
                            ops::max_pool3d(x, two, std::nullopt, none, one, false), 0);
  tt::testing::expect_close(ops::avg_pool3d(x, two, empty_list, none, false, true, std::nullopt),
                            ops::avg_pool3d(x, two, std::nullopt, none, false, true, std::nullopt), 0);
}

// Memory use must not scale with the size of the windows.
TEST_F(ExtremeKernelsTest, PoolingWindowsMayExceedPlanes) {
  const int64_t far = (int64_t{1} << 28) - 1;
  context_.account = std::make_shared<Account>("test", 1 << 20);
  Tensor x = leaf({1, 1, 2, 2}, {1, 2, 3, 4});
  {
    const int64_t kernel[] = {1, 2}, stride[] = {1, far}, padding[] = {0, 1};
    const Tensor y = ops::avg_pool2d(x, kernel, stride, padding, false, true, std::nullopt);
    EXPECT_THAT(read(y), ElementsAre(0.5, 1.5));
    backward(ops::sum(y, std::nullopt, false, std::nullopt));
    EXPECT_THAT(grad_of(x), ElementsAre(0.5, 0, 0.5, 0));
  }
  {  // one window, mostly padding
    const int64_t kernel[] = {far, far}, stride[] = {1, 1}, padding[] = {far / 2, far / 2}, dilation[] = {1, 1};
    const Tensor y = ops::max_pool2d(x, kernel, stride, padding, dilation, false);
    EXPECT_THAT(read(y), ElementsAre(4, 4, 4, 4));
    const Tensor mean = ops::avg_pool2d(x, kernel, stride, padding, false, false, std::nullopt);
    EXPECT_THAT(read(mean), ElementsAre(2.5, 2.5, 2.5, 2.5));
  }
  {  // dilation skips every second element; NaN propagates
    const Tensor z = values({1, 1, 1, 5}, {1, NAN, 3, 4, 2});
    const int64_t kernel[] = {3, 3}, stride[] = {1, 1}, padding[] = {1, 1}, dilation[] = {far / 2, 2};
    EXPECT_THAT(error_of([&] { ops::max_pool2d(z, kernel, stride, padding, dilation, false); }),
                HasSubstr("output size is too small"));
  }
}

TEST_F(ExtremeKernelsTest, RoundAcceptsAnyNumberOfDecimals) {
  const Tensor x = values({2}, {1.5, -2.5});
  for (int64_t decimals : {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    EXPECT_TRUE(std::isnan(read(ops::round(x, decimals))[0]));
  }
}

TEST_F(ExtremeKernelsTest, ResultsWithTooManyDimensionsFail) {
  const Tensor x = filled(Sizes(64, 1)), mask = constant({}, 1, DType::kBool);
  EXPECT_THAT(error_of([&] { ops::index_masked(x, {mask, mask}); }), HasSubstr("at most 64 dimensions"));
}

TEST_F(ExtremeKernelsTest, MovedimAcceptsZeroDimTensor) {
  const Tensor x = leaf({}, {3});
  const int64_t source[] = {0}, destination[] = {-1};
  backward(ops::movedim(x, source, destination));
  EXPECT_THAT(grad_of(x), ElementsAre(1));
}

TEST_F(ExtremeKernelsTest, EmptyWindowOfZeroDimTensorHasGradient) {
  const Tensor x = leaf({}, {3});
  backward(ops::sum(ops::unfold(x, 0, 0, 1), std::nullopt, false, std::nullopt));
  EXPECT_THAT(grad_of(x), ElementsAre(0));
}

}  // namespace
}  // namespace tt::autograd::testing
