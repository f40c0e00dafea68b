// Nested components, compared with the same functions of the sequences one by one.
#include "tests/client/api/api_test.h"

namespace teletensor::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

std::vector<Tensor> sequences() { return {randn({3, 4}), randn({0, 4}), randn({5, 4})}; }

void expect_near(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(std::vector<int64_t>(a.sizes().begin(), a.sizes().end()),
            std::vector<int64_t>(b.sizes().begin(), b.sizes().end()));
  EXPECT_THAT(a.data<float>(), Pointwise(FloatNear(1e-5f), b.data<float>()));
}

TEST_F(Api, NestedConversions) {
  const std::vector<Tensor> parts = sequences();
  const nested::Jagged x = nested::nested_tensor(parts);
  EXPECT_EQ(x.size(), 3);
  EXPECT_THAT(x.offsets.data<int64_t>(), ElementsAre(0, 3, 3, 8));
  EXPECT_THAT(x.lengths().data<int64_t>(), ElementsAre(3, 0, 5));
  for (size_t i = 0; i < parts.size(); ++i) expect_near(x.unbind()[i], parts[i]);
  const Tensor padded = x.to_padded(6, -1);
  EXPECT_EQ(padded.size(1), 6);
  expect_near(padded[2].slice(0, 0, 5), parts[2]);
  expect_near(padded[0].slice(0, 3), full({3, 4}, -1.0));
  EXPECT_EQ(x.to_padded().size(1), 5);
  const nested::Jagged back = nested::from_padded(padded, x.lengths());
  expect_near(back.values, x.values);
  EXPECT_THAT(back.offsets.data<int64_t>(), ElementsAre(0, 3, 3, 8));
}

TEST_F(Api, NestedReductions) {
  const std::vector<Tensor> parts = sequences();
  const nested::Jagged x = nested::nested_tensor(parts);
  expect_near(x.sum()[2], parts[2].sum(0));
  expect_near(x.sum()[1], zeros({4}));
  expect_near(x.mean()[0], parts[0].mean(0));
  expect_near(x.amax()[2], parts[2].amax(0));
  expect_near(x.amin()[0], parts[0].amin(0));
  expect_near(x.softmax().unbind()[2], parts[2].softmax(0));
  expect_near(x.log_softmax().unbind()[0], parts[0].log_softmax(0));
  const Tensor rows = randn({3, 4});
  expect_near(x.with(x.values + x.expand(rows)).unbind()[2], parts[2] + rows[2]);
}

TEST_F(Api, NestedAttention) {
  const auto made = [](std::vector<int64_t> lengths) {
    std::vector<Tensor> list;
    for (const int64_t length : lengths) list.push_back(randn({length, 2, 8}));
    nested::Jagged result = nested::nested_tensor(list);
    result.values = result.values.detach().requires_grad_();
    return result;
  };
  for (const bool is_causal : {false, true}) {
    const nested::Jagged q = made({3, 5}), k = made({3, 5}), v = made({3, 5});
    const nested::Jagged out = nested::scaled_dot_product_attention(q, k, v.values, is_causal);
    (out.values * out.values).sum().backward();
    const Tensor query_grad = q.values.grad().clone(), value_grad = v.values.grad().clone();
    for (const nested::Jagged* input : {&q, &k, &v}) input->values.grad().zero_();
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < 2; ++i) {
      const auto heads = [&](const nested::Jagged& x) { return x.unbind()[i].transpose(0, 1).unsqueeze(0); };
      const Tensor one = nn::functional::scaled_dot_product_attention(
          heads(q), heads(k), heads(v), nn::functional::ScaledDotProductAttentionFuncOptions().is_causal(is_causal));
      outputs.push_back(one.squeeze(0).transpose(0, 1));
    }
    const Tensor expected = cat(outputs);
    (expected * expected).sum().backward();
    expect_near(out.values, expected);
    expect_near(query_grad, q.values.grad());
    expect_near(value_grad, v.values.grad());
  }
}

TEST_F(Api, NestedDtypes) {
  const nested::Jagged bytes = nested::nested_tensor({tensor({200, 200}).to(kByte), tensor({3}).to(kByte)});
  EXPECT_THAT(bytes.sum().data<int64_t>(), ElementsAre(400, 3));
  EXPECT_THAT(bytes.mean().data<float>(), ElementsAre(200, 3));
  const Tensor long_row = randn({512, 2});
  const nested::Jagged narrow = nested::nested_tensor({long_row.to(kBFloat16)});
  expect_near(narrow.softmax().values.to(kFloat), long_row.to(kBFloat16).softmax(0).to(kFloat));
  const nested::Jagged ints{randn({4, 2}), tensor({0, 3, 4}).to(kInt)};
  expect_near(ints.sum()[1], ints.values[3]);
  expect_near(ints.softmax().values[3], ones({2}));
  EXPECT_EQ(ints.to_padded().size(1), 3);
}

TEST_F(Api, NestedGradients) {
  const Tensor a = randn({3, 4}).requires_grad_(), b = randn({2, 4}).requires_grad_();
  const nested::Jagged x = nested::nested_tensor({a, b});
  (x.sum() * tensor({{1.}, {2.}}).to(kFloat)).sum().backward();
  expect_near(a.grad(), ones({3, 4}));
  expect_near(b.grad(), full({2, 4}, 2.0));
}

TEST_F(Api, NestedErrors) {
  EXPECT_THAT(message_of<RuntimeError>([] { nested::nested_tensor({}); }), HasSubstr("at least one"));
  EXPECT_THAT(message_of<RuntimeError>([] { nested::nested_tensor({tensor(1.0)}); }), HasSubstr("[length, ...]"));
  const nested::Jagged scalar{ones({2}), tensor(0)};
  EXPECT_THAT(message_of<RuntimeError>([&] { scalar.size(); }), HasSubstr("a vector of offsets"));
  const nested::Jagged decreasing{ones({4, 2}), tensor({0, 3, 1, 4})}, outside{ones({4, 2}), tensor({0, 9})};
  EXPECT_THAT(message_of<RuntimeError>([&] { decreasing.unbind(); }), HasSubstr("do not decrease"));
  for (const nested::Jagged& wrong : {decreasing, outside}) {
    EXPECT_NE(message_of<RuntimeError>([&] { floats(wrong.sum()); }), "");
    EXPECT_NE(message_of<RuntimeError>([&] { floats(wrong.to_padded(3)); }), "");
    EXPECT_NE(message_of<RuntimeError>([&] { floats(wrong.softmax().values); }), "");
  }
  EXPECT_NE(message_of<RuntimeError>([] { floats(nested::Jagged{tensor(1.0), tensor({0, 1})}.mean()); }), "");
  const nested::Jagged matrix{ones({4}), tensor({{0, 2}, {3, 4}})};
  EXPECT_THAT(message_of<RuntimeError>([&] { matrix.unbind(); }), HasSubstr("a vector of offsets"));
  EXPECT_THAT(message_of<RuntimeError>([] {
                nested::from_padded(ones({2, 3}), tensor({2, 5}));
              }),
              HasSubstr("from 0 to 3"));
  const nested::Jagged flat = nested::nested_tensor({ones({3, 4})});
  EXPECT_THAT(message_of<RuntimeError>([&] { nested::scaled_dot_product_attention(flat, flat, flat.values); }),
              HasSubstr("[entries, heads, elements]"));
}

}  // namespace
}  // namespace teletensor::testing
