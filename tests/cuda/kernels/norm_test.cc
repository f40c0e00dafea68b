#include <gtest/gtest.h>

#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

// Weights of 16-bit inputs may have the same dtype or float32.
std::vector<DType> weight_dtypes(DType dtype) {
  if (item_size(dtype) == 2) return {dtype, DType::kFloat32};
  return {dtype};
}

double tolerance(DType dtype) { return 2 * tolerance_of(dtype); }

// Rows are read by element or in vectors, and kept in registers (up to 16 elements here) or reread.
TEST(CudaNormTest, Softmax) {
  SimulatedEngine engine;
  const std::pair<Sizes, int64_t> shapes[] = {{{3, 5}, 1},  {{3, 16}, 1},    {{5, 8}, 1},     {{4, 40}, 1},
                                              {{40, 3}, 0}, {{2, 19, 3}, 1}, {{3000, 3}, -2}, {{2, 20, 1500}, 1},
                                              {{}, 0},      {{0, 3}, 1},     {{7}, 0}};
  for (DType dtype : kFloatings) {
    for (const auto& [sizes, dim] : shapes) {
      for (bool log : {false, true}) {
        expect_cpu_and_gpu_agree(
            {filled(sizes, dtype), filled(sizes, dtype)}, tolerance(dtype), [&, dim = dim](const Tensors& t) {
              const Tensor y = log ? ops::log_softmax(t[0], dim) : ops::softmax(t[0], dim);
              const Tensor dx = log ? ops::log_softmax_backward(t[1], y, dim) : ops::softmax_backward(t[1], y, dim);
              return Tensors{y, dx};
            });
      }
    }
  }
}

TEST(CudaNormTest, SoftmaxOfInfinities) {
  SimulatedEngine engine;
  const double inf = INFINITY;
  for (int64_t n : {4, 40}) {  // kept in registers, and reread
    for (double first : {-inf, 1.0}) {
      const Tensor x = testing::constant({1, n}, -inf);
      testing::put(x, 1, first);
      testing::put(x, 2, first);
      const Tensor want = ops::softmax(x, 1), got = copy_to_cpu(ops::softmax(on_gpu(x), 1));
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(std::isnan(testing::at(got, i)), std::isnan(testing::at(want, i))) << first << " at " << i;
        if (std::isnan(testing::at(want, i))) continue;
        EXPECT_EQ(testing::at(got, i), testing::at(want, i));
      }
    }
    for (double odd : {inf, static_cast<double>(NAN)}) {
      const Tensor x = testing::constant({1, n}, 1);
      testing::put(x, n - 1, odd);
      const Tensor got = copy_to_cpu(ops::softmax(on_gpu(x), 1));
      for (int64_t i = 0; i < n; ++i) EXPECT_TRUE(std::isnan(testing::at(got, i))) << odd << " at " << i;
    }
  }
}

TEST(CudaNormTest, LayerNorm) {
  SimulatedEngine engine;
  const std::pair<Sizes, Sizes> shapes[] = {{{3, 5}, {5}},       {{3, 16}, {16}},  {{70, 64}, {64}},
                                            {{2, 3, 4}, {3, 4}}, {{70, 33}, {33}}, {{0, 4}, {4}}};
  for (DType dtype : kFloatings) {
    for (DType weights : weight_dtypes(dtype)) {
      for (const auto& [sizes, shape] : shapes) {
        for (bool affine : {true, false}) {
          const Tensor w = affine ? filled(shape, weights) : Tensor(), b = affine ? filled(shape, weights) : Tensor();
          expect_cpu_and_gpu_agree(
              {filled(sizes, dtype), w, b, filled(sizes, dtype)}, tolerance(dtype), [shape = shape](const Tensors& t) {
                Tensors all = ops::layer_norm_forward(t[0], shape, t[1], t[2], 1e-5);
                for (const Tensor& g : ops::layer_norm_backward(t[3], t[0], t[1], all[1], all[2], shape)) {
                  all.push_back(g);
                }
                return all;
              });
        }
      }
    }
  }
}

TEST(CudaNormTest, RmsNorm) {
  SimulatedEngine engine;
  for (DType dtype : kFloatings) {
    for (DType weights : weight_dtypes(dtype)) {
      for (int64_t n : {5, 16, 33, 64}) {
        expect_cpu_and_gpu_agree({filled({70, n}, dtype), filled({n}, weights), filled({70, n}, dtype)},
                                 tolerance(dtype), [&](const Tensors& t) {
                                   Tensors all = ops::rms_norm_forward(t[0], {n}, t[1], 1e-5);
                                   for (const Tensor& g : ops::rms_norm_backward(t[2], t[0], t[1], all[1], {n}))
                                     all.push_back(g);
                                   return all;
                                 });
      }
    }
  }
}

TEST(CudaNormTest, GroupNorm) {
  SimulatedEngine engine;
  const std::pair<Sizes, int64_t> shapes[] = {{{2, 4, 3}, 2},    {{2, 4, 8}, 2}, {{3, 6}, 2},
                                              {{2, 6, 5, 5}, 3}, {{40, 8}, 4},   {{0, 4, 2}, 2}};
  for (DType dtype : kFloatings) {
    for (DType weights : weight_dtypes(dtype)) {
      for (const auto& [sizes, groups] : shapes) {
        expect_cpu_and_gpu_agree(
            {filled(sizes, dtype), filled({sizes[1]}, weights), filled({sizes[1]}, weights), filled(sizes, dtype)},
            tolerance(dtype), [groups = groups](const Tensors& t) {
              Tensors all = ops::group_norm_forward(t[0], groups, t[1], t[2], 1e-5);
              for (const Tensor& g : ops::group_norm_backward(t[3], t[0], t[1], all[1], all[2], groups)) {
                all.push_back(g);
              }
              return all;
            });
      }
    }
  }
}

// In the last shapes each channel is summed in parts.
TEST(CudaNormTest, BatchNorm) {
  SimulatedEngine engine;
  const Sizes shapes[] = {{4, 3}, {2, 3, 4}, {2, 3, 2, 2}, {70, 3}, {3, 2, 70, 70}, {2, 2, 300}};
  for (DType dtype : kFloatings) {
    for (DType weights : weight_dtypes(dtype)) {
      for (const Sizes& sizes : shapes) {
        for (bool training : {true, false}) {
          const Sizes c{sizes[1]};
          const Tensor variance = testing::constant(c, 1.5, weights);
          expect_cpu_and_gpu_agree(
              {filled(sizes, dtype), filled(c, weights), variance, filled(c, weights), filled(c, weights),
               filled(sizes, dtype)},
              tolerance(dtype), [&](const Tensors& t) {
                Tensors all = ops::batch_norm_forward(t[0], t[1], t[2], t[3], t[4], training, 0.25, 1e-5);
                for (const Tensor& g : ops::batch_norm_backward(t[5], t[0], t[3], all[1], all[2], training)) {
                  all.push_back(g);
                }
                return all;
              });
        }
      }
    }
  }
}

TEST(CudaNormTest, BatchNormFarFromZero) {
  SimulatedEngine engine;
  const Tensor x = filled({50, 3});
  for (int64_t i = 0; i < x.numel(); ++i) testing::put(x, i, testing::at(x, i) + 5000);
  expect_cpu_and_gpu_agree({x}, 1e-4, [](const Tensors& t) {
    return ops::batch_norm_forward(t[0], Tensor(), Tensor(), Tensor(), Tensor(), true, 0.1, 1e-5);
  });
}

}  // namespace
}  // namespace tt::cuda
