#include <gtest/gtest.h>

#include "engine/session/graphs.h"
#include "tests/cuda/compare.h"
#include "tests/cuda/simulated/fused_attention.h"

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
    const Tensors nan = ops::attention_forward(on_gpu(x), on_gpu(x), on_gpu(x), on_gpu(mask), false, 1.0, false, {},
                                               false, /*empty_rows_are_nan=*/true);
    EXPECT_TRUE(std::isnan(testing::at(copy_to_cpu(nan[0]), 2)));
    EXPECT_TRUE(std::isnan(testing::at(copy_to_cpu(nan[1]), 1)));
  }
}

// Rows with scores are the same, whatever rows without are.
TEST(CudaAttentionTest, OneRowWithoutScores) {
  SimulatedEngine engine;
  const Tensor x = filled({1, 1, 3, 2}, DType::kFloat32), mask = testing::constant({1, 1, 3, 3}, 0);
  for (int64_t i = 3; i < 6; ++i) testing::put(mask, i, -INFINITY);
  expect_cpu_and_gpu_agree({x, mask}, 1e-6, [](const Tensors& t) {
    const Tensors results = ops::attention_forward(t[0], t[0], t[0], t[1], false, 1.0, false, {}, false, true);
    return Tensors{ops::isnan(results[0]), ops::nan_to_num(results[0], 0.0, {}, {})};
  });
}

// Which implementations a call may use: cuDNN's or our own.
struct Allowed {
  bool forward, backward;
};

struct LibraryCase {
  std::string what;
  Sizes query, value;  // the key's sizes follow from both
  bool is_causal = false;
  DType dtype = DType::kFloat16;
  double scale = 0.7;
  bool is_masked = false;
  Allowed uses = {false, false};  // which passes the library computes if it is allowed to

  Sizes key() const { return {value[0], value[1], value[2], query[3]}; }
  Sizes result() const { return {query[0], query[1], query[2], value[3]}; }
};

const LibraryCase kLibraryCases[] = {
    {"more columns", {2, 2, 128, 16}, {2, 2, 256, 8}, false, DType::kFloat16, 0.7, false, {true, true}},
    {"more rows, causal", {1, 2, 256, 8}, {1, 2, 128, 16}, true, DType::kBFloat16, 0.25, false, {true, true}},
    {"more columns, causal", {1, 1, 128, 8}, {1, 1, 256, 8}, true, DType::kFloat16, 0.7, false, {true, true}},
    {"largest depth", {1, 1, 128, 128}, {1, 1, 128, 8}, false, DType::kBFloat16, 0.1, false, {true, true}},
    {"an incomplete tile of rows", {1, 2, 5, 8}, {1, 2, 128, 8}, false, DType::kFloat16, 0.7, false, {true, false}},
    {"an incomplete tile of columns", {2, 1, 128, 8}, {2, 1, 7, 8}, true, DType::kFloat16, 0.7, false, {true, false}},
    {"one row", {1, 2, 1, 8}, {1, 2, 128, 8}},
    {"depth 12", {1, 1, 128, 12}, {1, 1, 128, 8}},
    {"width 12", {1, 1, 128, 8}, {1, 1, 128, 12}},
    {"width 136", {1, 1, 2, 8}, {1, 1, 3, 136}},
    {"float32", {1, 1, 128, 8}, {1, 1, 128, 8}, false, DType::kFloat32},
    {"a mask", {1, 1, 128, 8}, {1, 1, 128, 8}, false, DType::kFloat16, 0.7, true},
    {"a negative scale", {1, 1, 128, 8}, {1, 1, 128, 8}, false, DType::kFloat16, -0.7},
    {"no columns", {1, 1, 128, 8}, {1, 1, 0, 8}},
    {"no rows", {1, 1, 0, 8}, {1, 1, 128, 8}},
    {"no samples", {0, 1, 128, 8}, {0, 1, 128, 8}},
    {"no depth", {1, 1, 128, 0}, {1, 1, 128, 8}},
};

Tensors attend(const Tensors& t, const LibraryCase& c, Allowed allowed) {
  const Tensors results = ops::attention_forward(t[0], t[1], t[2], t[4], c.is_causal, c.scale, allowed.forward);
  const Tensors grads = ops::attention_backward(t[3], t[0], t[1], t[2], t[4], results[0], results[1], c.is_causal,
                                                c.scale, allowed.backward);
  return {results[0], results[1], grads[0], grads[1], grads[2]};
}

Tensors inputs_of(const LibraryCase& c) {
  Tensor mask;
  if (c.is_masked) mask = filled({c.query[0], c.query[1], c.query[2], c.value[2]}, c.dtype);
  return {filled(c.query, c.dtype), filled(c.key(), c.dtype), filled(c.value, c.dtype), filled(c.result(), c.dtype),
          mask};
}

// Each pass by the library or by our own kernels, after the other pass by either of them.
TEST(CudaAttentionTest, LibraryAndOwnKernelsAgree) {
  SimulatedEngine engine;
  for (const LibraryCase& c : kLibraryCases) {
    for (const Allowed allowed : {Allowed{true, true}, {true, false}, {false, true}, {false, false}}) {
      const SimulatedAttention before = simulated_attention();
      expect_cpu_and_gpu_agree(
          inputs_of(c), 32 * tolerance_of(c.dtype), [&](const Tensors& t) { return attend(t, c, allowed); }, c.what);
      // Twice: expect_cpu_and_gpu_agree() uses two layouts of the inputs.
      const SimulatedAttention after = simulated_attention();
      EXPECT_EQ(after.forward - before.forward, 2 * (allowed.forward && c.uses.forward)) << c.what;
      EXPECT_EQ(after.backward - before.backward, 2 * (allowed.backward && c.uses.backward)) << c.what;
    }
  }
}

TEST(CudaAttentionTest, OwnKernelsComputeWhatTheLibraryRejects) {
  SimulatedEngine engine;
  simulated_attention().rejects = true;
  const int before = simulated_attention().forward;
  expect_cpu_and_gpu_agree(inputs_of(kLibraryCases[0]), 32 * tolerance_of(DType::kFloat16), [&](const Tensors& t) {
    return attend(t, kLibraryCases[0], {true, true});
  });
  simulated_attention().rejects = false;
  EXPECT_EQ(simulated_attention().forward, before);
}

TEST(CudaAttentionTest, LibraryInCapturedGraph) {
  SimulatedEngine engine;
  const Tensor first = filled({1, 2, 16, 8}, DType::kFloat16), second = filled({1, 2, 16, 8}, DType::kFloat16);
  const Tensor x = on_gpu(first);
  Graphs& graphs = engine.context().graphs();
  graphs.begin(1, engine.gpu());
  const int before = simulated_attention().forward;
  const Tensor y = ops::attention_forward(x, x, x, Tensor(), true, 0.5, true)[0];
  EXPECT_EQ(simulated_attention().forward, before + 1);
  graphs.end(1);
  for (const Tensor& input : {first, second}) {
    copy_into(x, on_gpu(input));
    graphs.replay(1);
    const Tensor want = ops::attention_forward(input, input, input, Tensor(), true, 0.5)[0];
    expect_same(y, want, 32 * tolerance_of(DType::kFloat16));
  }
}

// A contiguous tensor may start at any element of its storage.
TEST(CudaAttentionTest, LibraryIsNotUsedForUnalignedTensors) {
  SimulatedEngine engine;
  const Tensor x = filled({1, 1, 16, 8}, DType::kFloat16), flat = on_gpu(filled({16 * 8 + 1}, DType::kFloat16));
  const Tensor shifted = view_of(flat, {{1, 1, 16, 8}, {128, 128, 8, 1}, 1, true});
  const SimulatedAttention before = simulated_attention();
  const Tensors got = ops::attention_forward(shifted, on_gpu(x), on_gpu(x), Tensor(), false, 0.5, true);
  EXPECT_EQ(simulated_attention().forward, before.forward);
  const Tensors want = ops::attention_forward(copy_to_cpu(shifted), x, x, Tensor(), false, 0.5);
  expect_same(got[0], want[0], 32 * tolerance_of(DType::kFloat16));
}

TEST(CudaAttentionTest, CompositePassesPermissionOn) {
  SimulatedEngine engine;
  const Tensor x = on_gpu(filled({2, 128, 8}, DType::kFloat16));
  for (const bool allowed : {false, true}) {
    const int before = simulated_attention().forward;
    copy_to_cpu(ops::attention(x, x, x, Tensor(), true, std::nullopt, allowed));
    EXPECT_EQ(simulated_attention().forward - before, allowed);
  }
}

}  // namespace
}  // namespace tt::cuda
