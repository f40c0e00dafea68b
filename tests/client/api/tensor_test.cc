// Tensor, its operators and indexing, with a real teletensord.
#include <thread>

#include "tests/client/api/api_test.h"

namespace teletensor::testing {
namespace {

using indexing::None;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

TEST_F(Api, CreatesTensorsFromLists) {
  const Tensor x = tensor({{1., 2.}, {3., 4.}});
  EXPECT_EQ(x.sizes(), IntArrayRef({2, 2}));
  EXPECT_EQ(x.dtype(), kFloat);
  EXPECT_THAT(floats(x), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(tensor({1, 2, 3}).dtype(), kLong);
  EXPECT_EQ(tensor({true, false}).dtype(), kBool);
  EXPECT_EQ(tensor(3.5).dim(), 0);
  EXPECT_EQ(tensor(3.5).item<double>(), 3.5);
  EXPECT_EQ(Tensor(3.0).item<float>(), 3.0f);
  EXPECT_EQ(tensor({{1, 2}}).sizes(), IntArrayRef({1, 2}));
  EXPECT_EQ(tensor(std::vector<double>{1, 2}).dtype(), kFloat);
  EXPECT_EQ(tensor(std::vector<int32_t>{1, 2}).dtype(), kInt);
  EXPECT_EQ(tensor({1, 2}, dtype(kDouble)).dtype(), kDouble);
  EXPECT_THAT(message_of<ValueError>([] { tensor({{1, 2}, {3}}); }), HasSubstr("expected sequence of length 2"));
  float memory[] = {1, 2, 3, 4, 5, 6};
  EXPECT_THAT(floats(from_blob(memory, {2, 3}).sum(0)), ElementsAre(5, 7, 9));
  EXPECT_EQ(tensor({9007199254740993}).item<int64_t>(), 9007199254740993);  // not through a double
}

TEST_F(Api, OptionsSelectDtypeDeviceAndGradients) {
  const Tensor x = zeros({2, 3}, dtype(kDouble).device(kCPU).requires_grad(true));
  EXPECT_EQ(x.dtype(), kDouble);
  EXPECT_TRUE(x.requires_grad());
  EXPECT_TRUE(ones(4, kMeta).device().is_meta());
  EXPECT_EQ(arange(5, kInt).dtype(), kInt);
  EXPECT_EQ(Device("cuda:1"), Device(kCUDA, 1));
  EXPECT_THAT(message_of<RuntimeError>([] { Device device("sofa"); }), HasSubstr("sofa"));
}

TEST_F(Api, OperatorsTakeTensorsAndNumbersOnBothSides) {
  const Tensor x = tensor({1., 2.}), y = tensor({3., 5.});
  EXPECT_THAT(floats(x + y), ElementsAre(4, 7));
  EXPECT_THAT(floats(x - 1), ElementsAre(0, 1));
  EXPECT_THAT(floats(1 - x), ElementsAre(0, -1));
  EXPECT_THAT(floats(2.5 * x), ElementsAre(2.5, 5));
  EXPECT_THAT(floats(1 / x), ElementsAre(1, 0.5));
  EXPECT_THAT(floats(x / y), ElementsAre(FloatNear(1 / 3., 1e-6), FloatNear(0.4, 1e-6)));
  EXPECT_THAT(floats(-x), ElementsAre(-1, -2));
  EXPECT_THAT((x < y).data<uint8_t>(), ElementsAre(1, 1));
  EXPECT_THAT((x == 2).data<uint8_t>(), ElementsAre(0, 1));
  EXPECT_THAT((1 < x).data<uint8_t>(), ElementsAre(0, 1));
  EXPECT_THAT((~(x == 2)).data<uint8_t>(), ElementsAre(1, 0));
  Tensor z = x.clone();
  z += y;
  z *= 2;
  EXPECT_THAT(floats(z), ElementsAre(8, 14));
  EXPECT_THAT(floats(z.sub_(1).add_(x, 10)), ElementsAre(17, 33));
}

TEST_F(Api, MethodsChain) {
  const Tensor x = tensor({{1., -2.}, {-3., 4.}}), w = eye(2);
  EXPECT_THAT(floats(x.matmul(w).relu()), ElementsAre(1, 0, 0, 4));
  EXPECT_THAT(floats(x.sum({0}, true)), ElementsAre(-2, 2));
  EXPECT_THAT(floats(x.mean(-1)), ElementsAre(-0.5, 0.5));
  EXPECT_EQ(x.var().item<float>(), x.var(std::nullopt, 1).item<float>());
  EXPECT_THAT(floats(x.std(0, false)), ElementsAre(2, 3));  // dimension 0, no correction
  EXPECT_EQ(x.var(0).sizes(), IntArrayRef({2}));            // a dimension, not `unbiased`
  const auto [values, indices] = x.max(1);
  EXPECT_THAT(floats(values), ElementsAre(1, 4));
  EXPECT_THAT(indices.data<int64_t>(), ElementsAre(0, 1));
  EXPECT_EQ(x.max().item<float>(), 4);
  EXPECT_EQ(cat({x, x}, 1).sizes(), IntArrayRef({2, 4}));
  EXPECT_EQ(x.view({4}).size(-1), 4);
  EXPECT_EQ(x.permute({1, 0}).strides(), IntArrayRef({1, 2}));
  EXPECT_EQ(x.split(1).size(), 2u);
  EXPECT_EQ(x.t()[0][1].item<float>(), -3);
  EXPECT_EQ(conv2d(ones({1, 1, 5, 5}), ones({1, 1, 3, 3}), {}, 1, 1, 1).sizes(), IntArrayRef({1, 1, 5, 5}));
  EXPECT_THAT(floats(x.clamp(-1, 1)), ElementsAre(1, -1, -1, 1));
  EXPECT_THAT(floats(matrix_exp(zeros({2, 2}))), ElementsAre(1, 0, 0, 1));
}

TEST_F(Api, Indexing) {
  const Tensor x = arange(12).view({3, 4});
  EXPECT_THAT(x[1].data<int64_t>(), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(x[-1][2].item<int>(), 10);
  EXPECT_EQ(x.index({Slice(1, None), "...", 0}).sizes(), IntArrayRef({2}));
  EXPECT_THAT(x.index({Slice(), Slice(None, None, 2)}).data<int64_t>(), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(x.index({Slice(-1, None), tensor({0, 3})}).data<int64_t>(), ElementsAre(8, 11));
  EXPECT_THAT(x.index({x > 9}).data<int64_t>(), ElementsAre(10, 11));
  EXPECT_EQ(x.index({None, 1}).sizes(), IntArrayRef({1, 4}));
  EXPECT_EQ(x.index({true}).sizes(), IntArrayRef({1, 3, 4}));
  EXPECT_THAT(message_of<IndexError>([&] { x.index({5}); }),
              HasSubstr("index 5 is out of bounds for dimension 0 with size 3"));
  EXPECT_THAT(message_of<IndexError>([&] { x.index({0, 0, 0}); }), HasSubstr("too many indices"));
  EXPECT_THAT(message_of<ValueError>([&] { x.index({Slice(0, 1, -1)}); }), HasSubstr("step must be greater"));
  Tensor y = x.clone();
  y.index_put_({0}, -1);
  y.index_put_({Slice(1, None), 3}, tensor({70, 110}));
  y.index_put_({y == 5}, 50);
  y.index_put_({tensor({1}), tensor({0})}, tensor({40}));
  EXPECT_THAT(y.data<int64_t>(), ElementsAre(-1, -1, -1, -1, 40, 50, 6, 70, 8, 9, 10, 110));
  const auto numbers = x.accessor<int64_t, 2>();
  EXPECT_EQ(numbers[2][1], 9);
}

TEST_F(Api, Comparisons) {
  const Tensor x = tensor({1., 2., NAN}), y = x.slice(0, 0, 2);
  EXPECT_TRUE(y.equal(tensor({1., 2.})));
  EXPECT_FALSE(equal(x, x));
  EXPECT_FALSE(equal(y, y.view({2, 1})));
  EXPECT_TRUE(allclose(y, y + 1e-7));
  EXPECT_FALSE(allclose(y, y + 1e-3));
  EXPECT_TRUE(y.allclose(y + 1e-3, 0, 1e-2));
  EXPECT_FALSE(x.allclose(x));
  EXPECT_TRUE(x.allclose(x, 1e-5, 1e-8, /*equal_nan=*/true));
  EXPECT_THAT(message_of<RuntimeError>([&] { y.allclose(y.to(kDouble)); }), HasSubstr("got float32 and float64"));
  EXPECT_TRUE(equal(ones({2}, requires_grad()), ones({2})));
}

TEST_F(Api, PositionsAndDistinctValues) {
  EXPECT_THAT(tril_indices(3, 2).data<int64_t>(), ElementsAre(0, 1, 1, 2, 2, 0, 0, 1, 0, 1));
  EXPECT_THAT(triu_indices(2, 3, 1).data<int64_t>(), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_EQ(triu_indices(2, 3, 1, dtype(kInt)).dtype(), kInt);
  EXPECT_EQ(triu_indices(0, 3).sizes(), IntArrayRef({2, 0}));
  EXPECT_THAT(message_of<RuntimeError>([] { tril_indices(-1, 2); }), HasSubstr("not negative, got -1 and 2"));
  EXPECT_THAT(message_of<RuntimeError>([] { tril_indices(1, 2, 0, dtype(kFloat)); }), HasSubstr("got float32"));
  EXPECT_THAT(argwhere(tensor({{0, 3}, {4, 0}})).data<int64_t>(), ElementsAre(0, 1, 1, 0));
  const auto [values, inverse, counts] = _unique2(tensor({3, 1, 3}), true, true, true);
  EXPECT_THAT(values.data<int64_t>(), ElementsAre(1, 3));
  EXPECT_THAT(inverse.data<int64_t>(), ElementsAre(1, 0, 1));
  EXPECT_THAT(counts.data<int64_t>(), ElementsAre(1, 2));
  EXPECT_FALSE(std::get<1>(_unique2(tensor({3, 1, 3}))).defined());
  EXPECT_THAT(message_of<RuntimeError>([] { meshgrid({ones({2, 2})}); }), HasSubstr("expected vectors"));
  EXPECT_THAT(message_of<RuntimeError>([] { meshgrid({ones({2})}, "yx"); }), HasSubstr("got \"yx\""));
  EXPECT_THAT(message_of<RuntimeError>([] { hsplit(ones({2, 3}), 2); }), HasSubstr("not divisible"));
  EXPECT_THAT(message_of<RuntimeError>([] { broadcast_tensors({ones({2}), ones({3})}); }), HasSubstr("got 2 and 3"));
}

TEST_F(Api, CopiesKeepTheShape) {
  const Tensor x = zeros(3);
  x.copy_(tensor({1., 2., 3.}));
  EXPECT_THAT(floats(x), ElementsAre(1, 2, 3));
  EXPECT_THAT(message_of<RuntimeError>([&] { x.copy_(ones({1, 3})); }), HasSubstr("output with shape [3]"));
  x.index_put_({Slice()}, ones({1, 3}));  // drops leading dimensions of size 1
  EXPECT_THAT(floats(x), ElementsAre(1, 1, 1));
  x.index_put_({tensor({0, 2})}, tensor({4., 5.}).view({1, 1, 2}));
  EXPECT_THAT(floats(x), ElementsAre(4, 1, 5));
}

TEST_F(Api, Gradients) {
  const Tensor w = tensor({2., 3.}, requires_grad()), x = tensor({5., 7.});
  (w * w * x).sum().backward();
  EXPECT_THAT(floats(w.grad()), ElementsAre(20, 42));
  w.set_grad(Tensor());
  EXPECT_FALSE(w.grad().defined());
  {
    NoGradGuard no_grad;
    EXPECT_FALSE((w * 2).requires_grad());
    AutoGradMode again(true);
    EXPECT_TRUE((w * 2).requires_grad());
  }
  {
    InferenceMode inference;
    EXPECT_FALSE(is_grad_enabled());
    EXPECT_FALSE((w * 2).requires_grad());
  }
  EXPECT_TRUE((w * 2).requires_grad());
  EXPECT_FALSE(w.detach().requires_grad());
  const Tensor first = autograd::grad({w.pow(3).sum()}, {w}, {}, std::nullopt, /*create_graph=*/true)[0];
  EXPECT_THAT(floats(autograd::grad({first.sum()}, {w})[0]), ElementsAre(12, 18));
  const Tensor h = w * 2;
  autograd::register_hook(h, [](const Tensor& g) { return g * 10; });
  h.sum().backward();
  EXPECT_THAT(floats(w.grad()), ElementsAre(20, 20));
  EXPECT_THAT(message_of<RuntimeError>([&] { x.sum().backward(); }), HasSubstr("does not require grad"));
}

struct Cube : autograd::Function<Cube> {
  static std::vector<Tensor> forward(autograd::AutogradContext* context, const std::vector<Tensor>& inputs) {
    context->save_for_backward(inputs);
    return {inputs[0].pow(3)};
  }
  static std::vector<Tensor> backward(autograd::AutogradContext* context, const std::vector<Tensor>& gradients) {
    return {gradients[0] * 3 * context->get_saved_variables()[0].pow(2)};
  }
};

TEST_F(Api, FunctionsWithTheirOwnDerivative) {
  const Tensor x = tensor({2., 3.}, requires_grad());
  const Tensor y = Cube::apply({x})[0];
  EXPECT_THAT(floats(y), ElementsAre(8, 27));
  y.sum().backward();
  EXPECT_THAT(floats(x.grad()), ElementsAre(12, 27));
}

struct Exponential : autograd::Function<Exponential> {
  static std::vector<Tensor> forward(autograd::AutogradContext* context, const std::vector<Tensor>& inputs) {
    const Tensor result = inputs[0].exp();
    context->save_for_backward({result, Tensor()});
    return {result};
  }
  static std::vector<Tensor> backward(autograd::AutogradContext* context, const std::vector<Tensor>& gradients) {
    return {gradients[0] * context->get_saved_variables()[0]};
  }
};

TEST_F(Api, FunctionsDoNotOwnTheirSavedResults) {
  const Tensor x = tensor({0., 0.}, requires_grad());
  Tensor y = Exponential::apply({x * 2})[0];
  EXPECT_EQ(y.handle()->ref_count(), 1);  // the node of y owns what backward() reads
  const Tensor sum = y.sum();
  y = Tensor();
  const Tensor first = autograd::grad({sum}, {x}, {}, std::nullopt, /*create_graph=*/true)[0];
  EXPECT_THAT(floats(first), ElementsAre(2, 2));
  EXPECT_THAT(floats(autograd::grad({first.sum()}, {x})[0]), ElementsAre(4, 4));
}

TEST_F(Api, ErrorsHaveTypes) {
  const Tensor x = ones({2, 3});
  EXPECT_THAT(message_of<RuntimeError>([&] { x + ones({4}); }), HasSubstr("[add]"));
  EXPECT_THAT(message_of<IndexError>([&] { x.sum(5); }), HasSubstr("[sum] Dimension out of range"));
  EXPECT_THAT(message_of<TypeError>([&] { x.matmul(Tensor()); }), HasSubstr("[matmul]"));
  EXPECT_THAT(message_of<IndexError>([&] { x.size(2); }), HasSubstr("Dimension out of range"));
  EXPECT_THAT(message_of<RuntimeError>([&] { x.item(); }), HasSubstr("cannot be converted to Scalar"));
  EXPECT_THAT(message_of<RuntimeError>([] { Tensor().sizes(); }), HasSubstr("undefined Tensor"));
  EXPECT_THAT(message_of<ConnectionError>([] { connect("127.0.0.1:1"); }), HasSubstr("127.0.0.1:1"));
  EXPECT_THROW(x.size(7), tt::Error);  // the type of the layer beneath
}

TEST_F(Api, SessionsOfThreads) {
  const Session other = connect_to(daemon());
  Tensor there;
  {
    SessionGuard guard(other);
    there = ones({2});
    std::thread([] { EXPECT_EQ(ones({1}).session().handle(), default_session().handle()); }).join();
  }
  EXPECT_EQ(there.session().handle(), other.handle());
  EXPECT_EQ((there + 1).session().handle(), other.handle());
  EXPECT_EQ(ones({1}).session().handle(), default_session().handle());
  EXPECT_THROW(there + ones({2}), RuntimeError);
  other.close();
  EXPECT_THROW(there + 1, ConnectionError);
}

TEST_F(Api, SeedsDetermineRandomNumbers) {
  manual_seed(7);
  const std::vector<float> first = floats(randn({4}));
  manual_seed(7);
  EXPECT_EQ(floats(randn({4})), first);
  Tensor x = empty({1000});
  x.uniform_(2, 3);
  EXPECT_GE(x.min().item<float>(), 2);
  EXPECT_LE(x.max().item<float>(), 3);
}

TEST_F(Api, ThreadsShareASession) {
  const Tensor w = eye(8) * 2;
  std::vector<std::thread> threads;
  std::vector<float> sums(4);
  for (size_t i = 0; i < sums.size(); ++i) {
    threads.emplace_back([&w, &sum = sums[i], i] {
      NoGradGuard no_grad;
      Tensor x = full({8, 8}, static_cast<double>(i));
      for (int step = 0; step < 50; ++step) x = x.matmul(w) / 2;
      Tensor v = x.detach().requires_grad_();
      AutoGradMode grad(true);
      (v * v).sum().backward();
      sum = (x + v.grad()).sum().item<float>();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(sums, ElementsAre(0, 64 * 3, 64 * 6, 64 * 9));
}

}  // namespace
}  // namespace teletensor::testing
