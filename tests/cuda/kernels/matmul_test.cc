#include <gtest/gtest.h>

#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

const DType kMultiplied[] = {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64,
                             DType::kInt64,   DType::kInt32,    DType::kUInt8};

TEST(CudaMatmulTest, VectorsMatricesAndBatches) {
  SimulatedEngine engine;
  const std::pair<Sizes, Sizes> shapes[] = {{{3, 4}, {4, 5}},
                                            {{4}, {4}},
                                            {{3, 4}, {4}},
                                            {{4}, {4, 2}},
                                            {{2, 3, 4}, {4}},
                                            {{4}, {2, 4, 3}},
                                            {{2, 1, 3, 4}, {5, 4, 2}},
                                            {{0, 3}, {3, 2}},
                                            {{2, 0}, {0, 3}},
                                            {{2, 3, 4}, {2, 4, 5}},
                                            {{3, 4}, {2, 4, 1}},
                                            {{2, 3, 1, 4}, {4, 3}},
                                            {{1, 1}, {1, 7}},
                                            {{2, 0, 4}, {4, 3}},
                                            {{7, 1}, {1, 1}}};
  for (DType dtype : kMultiplied) {
    for (const auto& [a, b] : shapes) {
      expect_cpu_and_gpu_agree(
          {filled(a, dtype), filled(b, dtype)}, tolerance_of(dtype),
          [](const Tensors& t) { return Tensors{ops::matmul(t[0], t[1])}; }, to_string(a) + to_string(b));
    }
  }
}

// Operands laid out as attention heads, transposed or expanded. 20 batches are too many for one library call per batch.
TEST(CudaMatmulTest, Layouts) {
  SimulatedEngine engine;
  for (DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kInt32}) {
    for (int64_t batch : {2, 20}) {
      expect_cpu_and_gpu_agree(
          {filled({batch, 3, 18, 4}, dtype), filled({batch, 3, 18, 4}, dtype)}, tolerance_of(dtype),
          [&](const Tensors& t) {
            const Tensor q = ops::transpose(t[0], 1, 2), k = ops::transpose(t[1], 1, 2);
            const Tensor scores = ops::matmul(q, ops::transpose(k, 2, 3));
            const Tensor repeated = ops::expand(ops::narrow(q, 2, 0, 1), {batch, 18, 3, 4});
            return Tensors{scores, ops::matmul(scores, k), ops::matmul(repeated, ops::transpose(k, 2, 3))};
          });
    }
    expect_cpu_and_gpu_agree({filled({18, 1, 2, 3}, dtype), filled({18, 3, 2}, dtype)}, tolerance_of(dtype),
                             [](const Tensors& t) { return Tensors{ops::matmul(t[0], t[1])}; });
    expect_cpu_and_gpu_agree({filled({4, 3}, dtype), filled({4, 5}, dtype)}, tolerance_of(dtype), [](const Tensors& t) {
      return Tensors{ops::matmul(ops::transpose(t[0], 0, 1), t[1]),
                     ops::matmul(ops::expand(ops::narrow(t[0], 0, 0, 1), {6, 3}), ops::narrow(t[1], 0, 0, 3))};
    });
  }
}

TEST(CudaMatmulTest, Linear) {
  SimulatedEngine engine;
  const std::pair<Sizes, Sizes> shapes[] = {{{3, 4}, {5, 4}}, {{2, 3, 4}, {5, 4}}, {{4}, {5, 4}},
                                            {{0, 4}, {5, 4}}, {{3, 0}, {5, 0}},    {{3, 4}, {1, 4}}};
  for (DType dtype : kFloatings) {
    for (const auto& [x, w] : shapes) {
      for (const Tensor& bias : {Tensor(), filled({w[0]}, dtype), filled({1}, dtype)}) {
        expect_cpu_and_gpu_agree({filled(x, dtype), filled(w, dtype), bias}, tolerance_of(dtype),
                                 [](const Tensors& t) { return Tensors{ops::linear(t[0], t[1], t[2])}; });
      }
    }
    // A bias at an address without the alignment that the library requires.
    expect_cpu_and_gpu_agree(
        {filled({3, 4}, dtype), filled({5, 4}, dtype), filled({6}, dtype)}, tolerance_of(dtype),
        [](const Tensors& t) { return Tensors{ops::linear(t[0], t[1], ops::narrow(t[2], 0, 1, 5))}; });
  }
}

// The library applies the activation if `input` is one bias per column; otherwise separate kernels do.
TEST(CudaMatmulTest, ProductsWithAnActivation) {
  SimulatedEngine engine;
  for (DType dtype : kFloatings) {
    for (const Sizes& added : {Sizes{5}, Sizes{1}, Sizes{}, Sizes{3, 5}, Sizes{3, 1}}) {
      for (const auto& [beta, alpha] :
           {std::pair(1.0, 1.0), std::pair(1.0, -2.0), std::pair(0.5, 2.0), std::pair(0.0, 1.0)}) {
        expect_cpu_and_gpu_agree(
            {filled(added, dtype), filled({3, 4}, dtype), filled({4, 5}, dtype)}, 4 * tolerance_of(dtype),
            [beta = beta, alpha = alpha](const Tensors& t) {
              return Tensors{ops::addmm_activation(t[0], t[1], t[2], beta, alpha, false),
                             ops::addmm_activation(t[0], t[1], t[2], beta, alpha, true)};
            },
            to_string(added));
      }
    }
    expect_cpu_and_gpu_agree({filled({5}, dtype), filled({3, 0}, dtype), filled({0, 5}, dtype)}, tolerance_of(dtype),
                             [](const Tensors& t) { return Tensors{ops::addmm_activation(t[0], t[1], t[2])}; });
    // A bias at an address without the alignment that the library requires.
    expect_cpu_and_gpu_agree(
        {filled({6}, dtype), filled({3, 4}, dtype), filled({4, 5}, dtype)}, 4 * tolerance_of(dtype),
        [](const Tensors& t) { return Tensors{ops::addmm_activation(ops::narrow(t[0], 0, 1, 5), t[1], t[2])}; });
  }
  expect_cpu_and_gpu_agree(
      {filled({5}, DType::kInt32), filled({3, 4}, DType::kInt32), filled({4, 5}, DType::kInt32)}, 0,
      [](const Tensors& t) { return Tensors{ops::addmm_activation(t[0], t[1], t[2], int64_t{2}, int64_t{3})}; });
}

TEST(CudaMatmulTest, PrecisionIsSessionSetting) {
  SimulatedEngine engine;
  EXPECT_FALSE(engine.context().allow_tf32);
  ops::set_float32_matmul_precision("high");
  EXPECT_TRUE(engine.context().allow_tf32);
  ops::set_float32_matmul_precision("highest");
  EXPECT_FALSE(engine.context().allow_tf32);
  EXPECT_THROW(ops::set_float32_matmul_precision("low"), Error);
}

}  // namespace
}  // namespace tt::cuda
