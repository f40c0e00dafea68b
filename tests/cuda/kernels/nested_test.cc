// Operators on jagged tensors, of contiguous and of other layouts: equal to the CPU.
#include <gtest/gtest.h>

#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

Tensor integers(std::vector<double> numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  return values({count}, std::move(numbers), DType::kInt64);
}

TEST(CudaNestedTest, ConversionsAndReductions) {
  SimulatedEngine engine;
  const Tensor offsets = integers({0, 2, 2, 70, 75}), lengths = integers({1, 0, 66, 5});
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kInt16}) {
    for (const Tensor& given : {Tensor(), lengths}) {
      expect_cpu_and_gpu_agree(
          {filled({76, 2, 3}, dtype), filled({4, 3}, dtype), offsets, given}, 4 * tolerance_of(dtype),
          [](const Tensors& t) {
            const Tensor padded = ops::jagged_to_padded(t[0], t[2], t[3], 60, Scalar(int64_t{3}));
            return Tensors{padded,
                           ops::padded_to_jagged(padded, t[2], t[3], 80),
                           ops::jagged_expand(t[1], t[2], t[3], 75),
                           ops::jagged_reduce(t[0], t[2], t[3], "sum"),
                           ops::jagged_reduce(t[0], t[2], t[3], "amax"),
                           ops::jagged_reduce(t[0], t[2], t[3], "amin")};
          },
          std::string(name(dtype)));
    }
  }
}

TEST(CudaNestedTest, Attention) {
  SimulatedEngine engine;
  const Tensor rows = integers({0, 3, 3, 40, 42}), columns = integers({1, 1, 4, 39, 40});
  for (DType dtype : kFloatings) {
    for (const bool causal : {false, true}) {
      const Tensors inputs{filled({2, 43, 3}, dtype),
                           filled({2, 41, 3}, dtype),
                           filled({2, 41, 5}, dtype),
                           filled({2, 43, 5}, dtype),
                           rows,
                           columns};
      expect_cpu_and_gpu_agree(
          inputs, 16 * tolerance_of(dtype),
          [&](const Tensors& t) {
            const Tensors y =
                ops::jagged_attention_forward(t[0], t[1], t[2], t[4], Tensor(), t[5], Tensor(), causal, 0.6);
            const Tensors g = ops::jagged_attention_backward(t[3], t[0], t[1], t[2], t[4], Tensor(), t[5], Tensor(),
                                                             y[0], y[1], causal, 0.6);
            return Tensors{y[0], y[1], g[0], g[1], g[2]};
          },
          std::string(name(dtype)));
    }
  }
}

TEST(CudaNestedTest, InvalidOffsets) {
  SimulatedEngine engine;
  const Tensor x = filled({6, 2});
  const auto sum = [](const Tensors& t) { return Tensors{ops::jagged_reduce(t[0], t[1], t[2], "sum")}; };
  expect_both_fail(engine, "expected offsets between 0 and 6, got offsets from 0 to 7", {x, integers({0, 7}), Tensor()},
                   sum);
  expect_both_fail(engine, "do not decrease and are at most 6, got 2 after 4", {x, integers({0, 4, 2, 6}), Tensor()},
                   sum);
  expect_both_fail(engine, "expected a length between 0 and 2 for the sequence from offset 4 to 6, got 3",
                   {x, integers({0, 4, 6}), integers({1, 3})}, sum);
  // The first error is reported.
  expect_both_fail(engine, "got 9 after 1", {x, integers({0, 1, 9, 3, 2, 6}), integers({1, -1, 0, 7, 0})}, sum);
}

}  // namespace
}  // namespace tt::cuda
