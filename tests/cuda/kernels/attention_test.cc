#include <gtest/gtest.h>

#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

struct Case {
  int64_t batches, heads, rows, columns, depth, width;
  Sizes mask;
  bool is_causal;
};

// One block, several blocks of rows or of batches, fully masked rows, empty vectors and no keys.
const Case kCases[] = {
    {1, 2, 3, 5, 4, 3, {}, false},
    {2, 1, 7, 5, 2, 3, {}, true},
    {1, 2, 5, 7, 2, 2, {}, true},
    {2, 2, 4, 3, 3, 1, {2, 1, 1, 3}, false},
    {1, 2, 300, 6, 2, 1, {1, 2, 300, 6}, false},
    {1, 1, 520, 270, 3, 2, {}, true},
    {1, 2, 3, 4, 0, 2, {}, false},
    {1, 2, 3, 4, 2, 0, {}, false},
    {1, 2, 3, 0, 2, 2, {}, false},
    {0, 2, 3, 4, 2, 2, {}, false},
    {1, 2, 0, 4, 2, 2, {}, true},
};

Tensors forward_and_backward(const Tensors& t, const Case& c) {
  const Tensors results = ops::attention_forward(t[0], t[1], t[2], t[4], c.is_causal, 0.7);
  const Tensors grads = ops::attention_backward(t[3], t[0], t[1], t[2], t[4], results[0], results[1], c.is_causal, 0.7);
  return {results[0], results[1], grads[0], grads[1], grads[2]};
}

TEST(CudaAttentionTest, AgreesWithCpu) {
  SimulatedEngine engine;
  for (DType dtype : kFloatings) {
    for (const Case& c : kCases) {
      const Sizes query{c.batches, c.heads, c.rows, c.depth}, key{c.batches, c.heads, c.columns, c.depth};
      const Sizes value{c.batches, c.heads, c.columns, c.width}, result{c.batches, c.heads, c.rows, c.width};
      Tensor mask;
      if (!c.mask.empty()) mask = ops::expand(filled(c.mask, dtype), Sizes{c.batches, c.heads, c.rows, c.columns});
      const Tensors inputs{filled(query, dtype), filled(key, dtype), filled(value, dtype), filled(result, dtype), mask};
      expect_cpu_and_gpu_agree(
          inputs, 16 * tolerance_of(dtype), [&](const Tensors& t) { return forward_and_backward(t, c); },
          to_string(query) + to_string(value));
    }
  }
}

// More scores than fit into one block, so that batches are processed one after the other.
TEST(CudaAttentionTest, ManyBatches) {
  SimulatedEngine engine;
  const Tensor q = filled({1, 3, 257, 1}, DType::kFloat32), k = filled({1, 3, 32768, 1}, DType::kFloat32);
  expect_cpu_and_gpu_agree({q, k}, 1e-3, [](const Tensors& t) {
    return Tensors{ops::attention_forward(t[0], t[1], t[1], Tensor(), false, 0.5)[0]};
  });
}

TEST(CudaAttentionTest, FullyMaskedRowsAndNaN) {
  SimulatedEngine engine;
  const Tensor x = filled({1, 1, 2, 2}, DType::kFloat32), mask = testing::constant({1, 1, 2, 2}, -INFINITY);
  for (const double seen : {-double{INFINITY}, double{NAN}}) {
    testing::put(mask, 0, seen);
    const Tensors got = ops::attention_forward(on_gpu(x), on_gpu(x), on_gpu(x), on_gpu(mask), false, 1.0);
    const Tensor output = copy_to_cpu(got[0]), logsumexp = copy_to_cpu(got[1]);
    EXPECT_EQ(std::isnan(testing::at(output, 0)), std::isnan(seen));
    if (!std::isnan(seen)) EXPECT_EQ(testing::at(output, 0), 0);
    EXPECT_EQ(testing::at(output, 2), 0);
    EXPECT_EQ(testing::at(logsumexp, 1), -INFINITY);
  }
}

}  // namespace
}  // namespace tt::cuda
