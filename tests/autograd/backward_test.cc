// Results of backward, and the lifetime of the graph.

#include "tests/autograd/fixture.h"

namespace tt::autograd::testing {
namespace {

using V = std::vector<double>;

class BackwardTest : public AutogradTest {};

TEST_F(BackwardTest, SumsBroadcastGradientsAndCastsToLeafDtype) {
  Tensor x = leaf({2, 3}, {1, 2, 3, 4, 5, 6}, DType::kFloat64), y = leaf({3}, {1, 10, 100}, DType::kFloat32);
  backward(ops::sum(ops::mul(x, y), std::nullopt, false, std::nullopt));
  EXPECT_EQ(grad_of(x), (V{1, 10, 100, 1, 10, 100}));
  EXPECT_EQ(grad_of(y), (V{5, 7, 9}));
  EXPECT_EQ(find_history(*y.get())->grad.dtype(), DType::kFloat32);
}

TEST_F(BackwardTest, AccumulatesInPlaceOverPasses) {
  Tensor x = leaf({2}, {1, 2});
  backward(ops::sum(ops::mul(x, x), std::nullopt, false, std::nullopt));
  Tensor first = find_history(*x.get())->grad;
  backward(ops::sum(ops::mul(x, 3.0), std::nullopt, false, std::nullopt));
  EXPECT_EQ(grad_of(x), (V{5, 7}));
  EXPECT_TRUE(find_history(*x.get())->grad.same(first));
}

TEST_F(BackwardTest, GradientOfTwoLeavesIsNotShared) {
  Tensor x = leaf({2}, {1, 2}), y = leaf({2}, {3, 4});
  backward(ops::sum(ops::add(x, y), std::nullopt, false, std::nullopt));
  backward(ops::sum(ops::mul(x, 2.0), std::nullopt, false, std::nullopt));
  EXPECT_EQ(grad_of(x), (V{3, 3}));
  EXPECT_EQ(grad_of(y), (V{1, 1}));
}

TEST_F(BackwardTest, SecondAndThirdDerivatives) {
  Tensor x = leaf({}, {2});
  Tensor y = ops::mul(ops::mul(x, x), ops::mul(x, x));
  Tensor first = grad(y, {x}, true)[0];
  EXPECT_EQ(read(first), V{32});
  Tensor second = grad(first, {x}, true)[0];
  EXPECT_EQ(read(second), V{48});
  Tensor third = grad(second, {x})[0];
  EXPECT_EQ(read(third), V{48});
}

TEST_F(BackwardTest, SecondDerivativeThroughASavedResult) {
  Tensor x = leaf({}, {1.5});
  Tensor first = grad(ops::exp(ops::mul(x, 2.0)), {x}, true)[0];
  Tensor second = grad(first, {x})[0];
  EXPECT_NEAR(read(second)[0], 4 * std::exp(3.0), 1e-12);
}

TEST_F(BackwardTest, CumulativeProductsOfZeros) {
  Tensor x = leaf({4}, {2, 0, 3, 5});
  Tensor first = grad(ops::cumprod(x, 0, std::nullopt), {x}, true)[0];
  EXPECT_EQ(read(first), (V{1, 2 + 6 + 30, 0, 0}));
  Tensor second = grad(ops::select(first, 0, 1), {x})[0];  // gradient of x0 (1 + x2 (1 + x3))
  EXPECT_EQ(read(second), (V{19, 0, 12, 6}));
}

TEST_F(BackwardTest, CapturesGradientsOfNonLeaves) {
  Tensor x = leaf({}, {3});
  Tensor y = ops::mul(x, x), z = ops::mul(y, 2.0);
  Tensors gradients = grad(z, {y, x});
  EXPECT_EQ(read(gradients[0]), V{2});
  EXPECT_EQ(read(gradients[1]), V{12});
  EXPECT_TRUE(grad_of(x).empty());
}

TEST_F(BackwardTest, SecondPassFailsAfterGraphIsFreed) {
  Tensor x = leaf({}, {3});
  Tensor y = ops::mul(x, x);
  backward(y, {true, true, false});
  backward(y);
  EXPECT_EQ(grad_of(x), V{12});
  EXPECT_THAT(error_of([&] { backward(y); }),
              ::testing::HasSubstr("Trying to backward through the graph a second time"));
  EXPECT_THAT(error_of([&] { backward(ops::add(x, x)); }), ::testing::HasSubstr("a second time"))
      << "the gradient lacks the failed pass's part";
  Tensor z = leaf({}, {3});
  Tensor sum = ops::add(z, z);  // saves no tensors, so it may be repeated
  backward(sum);
  EXPECT_EQ(error_of([&] { backward(sum); }), "");
}

TEST_F(BackwardTest, ChecksRootGradients) {
  Tensor x = leaf({2}, {1, 2});
  EXPECT_THAT(error_of([&] { backward(ops::mul(x, 2.0)); }),
              ::testing::HasSubstr("grad can be implicitly created only for scalar outputs"));
  EXPECT_EQ(error_of([&] { backward(values({}, {1})); }), "");  // a constant root is allowed
  Tensor y = ops::mul(x, 2.0), g = values({3}, {1, 1, 1}, DType::kFloat64);
  EXPECT_THAT(error_of([&] { GraphTask({&y, 1}, {&g, 1}, {}, {}); }), ::testing::HasSubstr("Mismatch in shape"));
}

TEST_F(BackwardTest, RecordsNothingWithoutGradMode) {
  Tensor x = leaf({2}, {1, 2});
  {
    GradMode off(false);
    EXPECT_FALSE(ops::mul(x, x).requires_grad());
  }
  EXPECT_FALSE(ops::mul(ops::detach(x), 2.0).requires_grad());
  EXPECT_FALSE(ops::eq(x, x).requires_grad());
}

TEST_F(BackwardTest, PartOfResultsHasGradients) {
  Tensor x = leaf({4}, {1, 2, 3, 4});
  Tensors parts = ops::split(x, 2, 0);
  backward(ops::sum(ops::mul(parts[1], parts[1]), std::nullopt, false, std::nullopt));
  EXPECT_EQ(grad_of(x), (V{0, 0, 6, 8}));
}

TEST_F(BackwardTest, ChainOfMillionNodes) {
  Tensor x = leaf({}, {1});
  Tensor y = ops::add(x, 0.0);
  for (int i = 0; i < 1000000; ++i) y = ops::add(y, 0.0);
  backward(y);
  EXPECT_EQ(grad_of(x), V{1});
  y = Tensor();  // destroying the chain must not overflow the stack
}

TEST_F(BackwardTest, FreesAllMemory) {
  auto account = std::make_shared<Account>("test");
  context_.account = account;
  {
    Tensor x = leaf({64}, V(64, 1.0));
    for (bool create_graph : {false, true}) {
      Tensor y = ops::sum(ops::exp(ops::mul(x, x)), std::nullopt, false, std::nullopt);
      backward(y, {true, create_graph, create_graph});
    }
    // A tensor computed in place from its own value.
    Tensor y = ops::mul(x, 2.0);
    in_place(op_id::kAdd, y, {Arg(ops::mul(y, y).get()), Arg(int64_t{1})});
    EXPECT_GT(account->held(), 0u);
  }
  EXPECT_EQ(account->held(), 0u);
}

TEST_F(BackwardTest, ReportsOperatorOfNaN) {
  context_.detect_anomaly = true;
  context_.describe_site = [](uint32_t site) { return "line " + std::to_string(site); };
  Tensor x = leaf({}, {0});
  context_.site = 7;
  Tensor y = ops::sqrt(x);
  context_.site = 8;
  Tensor z = ops::mul(y, 0.0);
  std::string error = error_of([&] { backward(z); });
  EXPECT_THAT(error, ::testing::HasSubstr("'SqrtBackward0' returned nan"));
  EXPECT_THAT(error, ::testing::HasSubstr("line 7"));
}

}  // namespace
}  // namespace tt::autograd::testing
