// In-place writes to tensors with a history, to views, and to tensors that backward needs.

#include "tests/autograd/fixture.h"

namespace tt::autograd::testing {
namespace {

using V = std::vector<double>;

class InPlaceTest : public AutogradTest {
 protected:
  static void backward_of_sum(const Tensor& t) { backward(ops::sum(t, std::nullopt, false, std::nullopt)); }
  static void assign(const Tensor& target, const Tensor& source) {
    in_place(op_id::kAssign, target, {Arg(source.get())});
  }
};

TEST_F(InPlaceTest, ContinuesHistory) {
  Tensor x = leaf({2}, {1, 2});
  Tensor y = ops::mul(x, 3.0);
  in_place(op_id::kMul, y, {Arg(y.get())});
  EXPECT_EQ(read(y), (V{9, 36}));
  backward_of_sum(y);
  EXPECT_EQ(grad_of(x), (V{18, 36}));  // gradient of 9 x^2
}

TEST_F(InPlaceTest, MakesATensorRequireGrad) {
  Tensor x = leaf({2}, {1, 2}), y = values({2}, {5, 5}, DType::kFloat64);
  in_place(op_id::kMul, y, {Arg(x.get())});
  EXPECT_TRUE(y.requires_grad());
  backward_of_sum(y);
  EXPECT_EQ(grad_of(x), (V{5, 5}));
}

TEST_F(InPlaceTest, RejectsWriteToLeaf) {
  Tensor x = leaf({2}, {1, 2});
  EXPECT_THAT(error_of([&] { in_place(op_id::kMul, x, {Arg(2.0)}); }),
              ::testing::HasSubstr("a leaf Variable that requires grad is being used in an in-place operation"));
  Tensor view = ops::select(x, 0, 0);
  EXPECT_THAT(error_of([&] { in_place(op_id::kMul, view, {Arg(2.0)}); }),
              ::testing::HasSubstr("a view of a leaf Variable that requires grad"));
  GradMode off(false);
  in_place(op_id::kMul, x, {Arg(2.0)});  // without recording, like an optimizer step
  EXPECT_EQ(read(x), (V{2, 4}));
}

TEST_F(InPlaceTest, DetectsChangedArgument) {
  Tensor x = leaf({2}, {1, 2});
  Tensor y = ops::mul(x, 2.0), z = ops::mul(y, y);
  in_place(op_id::kAdd, y, {Arg(1.0), Arg(int64_t{1})});
  std::string error = error_of([&] { backward_of_sum(z); });
  EXPECT_THAT(error, ::testing::HasSubstr("has been modified by an inplace operation: [float64[2]]"));
  EXPECT_THAT(error, ::testing::HasSubstr("is at version 1; expected version 0 instead"));
}

TEST_F(InPlaceTest, DetectsChangedResultThroughView) {
  Tensor x = leaf({2}, {1, 2});
  Tensor y = ops::exp(x);
  Tensor z = ops::mul(y, 1.0);
  in_place(op_id::kMul, ops::select(y, 0, 0), {Arg(2.0)});
  EXPECT_THAT(error_of([&] { backward_of_sum(y); }), ::testing::HasSubstr("modified by an inplace operation"));
}

TEST_F(InPlaceTest, WriteToViewUpdatesBaseHistory) {
  Tensor x = leaf({3}, {1, 2, 3}), w = leaf({}, {10});
  Tensor y = ops::mul(x, 2.0);
  Tensor part = ops::select(y, 0, 1);
  in_place(op_id::kMul, part, {Arg(w.get())});
  EXPECT_EQ(read(y), (V{2, 40, 6}));
  backward_of_sum(y);
  EXPECT_EQ(grad_of(x), (V{2, 20, 2}));
  EXPECT_EQ(grad_of(w), V{4});
}

TEST_F(InPlaceTest, WriteToBaseUpdatesViewHistory) {
  Tensor x = leaf({3}, {1, 2, 3});
  Tensor y = ops::mul(x, 1.0);
  Tensor part = ops::narrow(y, 0, 1, 2);
  in_place(op_id::kMul, y, {Arg(5.0)});
  backward_of_sum(part);
  EXPECT_EQ(grad_of(x), (V{0, 5, 5}));
}

TEST_F(InPlaceTest, FillsBufferSliceBySlice) {
  Tensor x = leaf({2}, {1, 2});
  Tensor buffer = ops::zeros(Sizes{2, 2}, DType::kFloat64, Device{});
  assign(ops::select(buffer, 0, 0), ops::mul(x, 2.0));
  assign(ops::select(buffer, 0, 1), ops::mul(x, 3.0));
  EXPECT_TRUE(buffer.requires_grad());
  backward_of_sum(ops::mul(buffer, buffer));
  EXPECT_EQ(grad_of(x), (V{26, 52}));  // gradient of 13 x^2
}

TEST_F(InPlaceTest, OverwrittenElementsHaveNoGradient) {
  Tensor x = leaf({3}, {1, 2, 3});
  Tensor y = ops::mul(x, 2.0);
  assign(ops::select(y, 0, 0), values({}, {7}, DType::kFloat64));
  backward_of_sum(y);
  EXPECT_EQ(grad_of(x), (V{0, 2, 2}));
}

TEST_F(InPlaceTest, OverwritingAllElementsGivesZeroGradient) {
  Tensor x = leaf({2}, {1, 2}), z = leaf({2}, {3, 4});
  Tensor y = ops::mul(x, 2.0);
  assign(y, z);
  backward_of_sum(ops::mul(y, y));
  EXPECT_EQ(grad_of(x), (V{0, 0}));
  EXPECT_EQ(grad_of(z), (V{6, 8}));
}

TEST_F(InPlaceTest, SecondDerivativeOfWrite) {
  Tensor x = leaf({2}, {2, 3});
  Tensor y = ops::mul(x, 1.0);
  in_place(op_id::kMul, ops::select(y, 0, 0), {Arg(ops::select(x, 0, 1).get())});
  Tensor z = ops::sum(ops::mul(y, y), std::nullopt, false, std::nullopt);  // (x0 x1)^2 + x1^2
  Tensor first = grad(z, {x}, true)[0];
  EXPECT_EQ(read(first), (V{36, 30}));
  Tensor second = grad(ops::select(first, 0, 0), {x})[0];
  EXPECT_EQ(read(second), (V{18, 24}));  // 2 x1^2, 4 x0 x1
}

TEST_F(InPlaceTest, ExpandedAndPermutedViewsAccumulate) {
  Tensor x = leaf({2}, {1, 2});
  Tensor base = ops::mul(x, 1.0);
  Tensor wide = ops::expand(base, Sizes{3, 2});
  in_place(op_id::kMul, base, {Arg(2.0)});  // from here on `wide` is a plain view of base
  backward_of_sum(wide);
  EXPECT_EQ(grad_of(x), (V{6, 6}));
}

}  // namespace
}  // namespace tt::autograd::testing
