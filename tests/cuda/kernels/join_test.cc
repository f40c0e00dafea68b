// Operators that concatenate tensors or rearrange elements: equal to the CPU.
#include <gtest/gtest.h>

#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

using testing::filled;
using testing::transposed;
using Ints = absl::Span<const int64_t>;

class JoinTest : public ::testing::Test {
 protected:
  // For every element width, on a contiguous and on a transposed tensor.
  void expect_moved(const std::string& what, const Sizes& sizes, const std::function<Tensor(const Tensor&)>& move) {
    for (DType dtype : {DType::kBool, DType::kInt16, DType::kBFloat16, DType::kFloat32, DType::kInt64}) {
      const Tensor x = filled(sizes, dtype);
      expect_equal_on_gpu(engine_, what, {x}, [&](const Tensors& in) -> Tensors { return {move(in[0])}; });
      if (x.dim() < 2) continue;
      const Tensor across = transposed(filled({sizes.rbegin(), sizes.rend()}, dtype), 0, x.dim() - 1);
      expect_equal_on_gpu(engine_, what + " across", {across},
                          [&](const Tensors& in) -> Tensors { return {move(in[0])}; });
    }
  }
  SimulatedEngine engine_;
};

TEST_F(JoinTest, Concatenates) {
  const Tensors three = {filled({2, 3}), transposed(filled({3, 1}), 0, 1), filled({0})};
  expect_equal_on_gpu(engine_, "cat", three, [](const Tensors& in) -> Tensors { return {ops::cat(in, 0)}; });
  const Tensors mixed = {filled({2, 3}, DType::kInt32), filled({2, 2}, DType::kFloat64)};
  expect_equal_on_gpu(engine_, "cat of dtypes", mixed, [](const Tensors& in) -> Tensors { return {ops::cat(in, -1)}; });
  const Tensors equal = {filled({2, 3}), transposed(filled({3, 2}), 0, 1)};
  expect_equal_on_gpu(engine_, "stack", equal, [](const Tensors& in) -> Tensors {
    return {ops::stack(in, 0), ops::stack(in, 1), ops::stack(in, -1)};
  });
}

TEST_F(JoinTest, Repeats) {
  expect_moved("repeat", {2, 3}, [](const Tensor& x) { return ops::repeat(x, Ints({2, 3})); });
  expect_moved("repeat in front", {2, 3}, [](const Tensor& x) { return ops::repeat(x, Ints({2, 1, 2})); });
  expect_moved("repeat never", {2, 3}, [](const Tensor& x) { return ops::repeat(x, Ints({0, 1})); });
}

TEST_F(JoinTest, FlipsAndRolls) {
  expect_moved("flip", {2, 3, 4}, [](const Tensor& x) { return ops::flip(x, Ints({0, 2})); });
  expect_moved("flip nothing", {0, 3}, [](const Tensor& x) { return ops::flip(x, Ints({1})); });
  expect_moved("roll", {3, 4}, [](const Tensor& x) { return ops::roll(x, Ints({1, -2}), Ints({0, 1})); });
  expect_moved("roll flat", {3, 4}, [](const Tensor& x) { return ops::roll(x, Ints({5}), Ints()); });
}

TEST_F(JoinTest, Triangles) {
  for (int64_t diagonal : {int64_t{0}, int64_t{1}, int64_t{-2}, int64_t{9}, INT64_MIN, INT64_MAX}) {
    expect_moved("tril", {2, 3, 4}, [=](const Tensor& x) { return ops::tril(x, diagonal); });
    expect_moved("triu", {2, 4, 3}, [=](const Tensor& x) { return ops::triu(x, diagonal); });
  }
}

TEST_F(JoinTest, Diagonals) {
  expect_moved("diag_embed", {2, 3}, [](const Tensor& x) { return ops::diag_embed(x); });
  expect_moved("diag_embed below", {2, 3}, [](const Tensor& x) { return ops::diag_embed(x, -1, 0, 2); });
  expect_moved("diag_embed of nothing", {2, 0}, [](const Tensor& x) { return ops::diag_embed(x, 1); });
}

}  // namespace
}  // namespace tt::cuda
