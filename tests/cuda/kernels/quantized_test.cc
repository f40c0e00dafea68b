// Operators on quantized integers, of contiguous and of other layouts: equal to the CPU.
#include <gtest/gtest.h>

#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

// Integers of the whole range of an 8-bit dtype.
Tensor bytes(Sizes sizes, DType dtype) {
  Tensor t = empty(sizes, dtype, Device{});
  std::uniform_int_distribution<int> numbers(dtype == DType::kUInt8 ? 0 : -128, dtype == DType::kUInt8 ? 255 : 127);
  for (int64_t i = 0; i < t.numel(); ++i) testing::put(t, i, numbers(testing::random_bits()));
  return t;
}

TEST(CudaQuantizedTest, Products) {
  SimulatedEngine engine;
  for (DType dtype : {DType::kUInt8, DType::kInt8}) {
    for (const int64_t m : {2, 67}) {
      const Tensors inputs{bytes({m, 37}, dtype), bytes({66, 37}, DType::kInt8), filled({66}, DType::kInt32),
                           ops::abs(filled({66})), filled({66})};
      expect_cpu_and_gpu_agree(inputs, 0, [](const Tensors& t) {
        const Tensor scale = ops::add(t[3], 0.01);
        return Tensors{ops::int8_linear(t[0], t[1], int64_t{7}, t[2]),
                       ops::int8_linear_quantized(t[0], t[1], int64_t{7}, t[2], scale, t[4], 3000.0, 4, 0, 200, false)};
      });
      expect_cpu_and_gpu_agree(
          {filled({m, 37}), inputs[1], inputs[2], inputs[3], inputs[4]}, 1e-5, [](const Tensors& t) {
            return Tensors{ops::int8_linear_dynamic(t[0], t[1], t[3], t[2], t[4], false, true, false),
                           ops::int8_weight_mm(t[0], t[1], t[3])};
          });
    }
  }
}

TEST(CudaQuantizedTest, Convolutions) {
  SimulatedEngine engine;
  for (const int64_t groups : {1, 2, 6}) {
    const Tensors inputs{bytes({2, 6, 5, 4}, DType::kUInt8), bytes({18, 6 / groups, 3, 2}, DType::kInt8),
                         filled({18}, DType::kInt8)};
    expect_cpu_and_gpu_agree(inputs, 0, [&](const Tensors& t) {
      return Tensors{ops::int8_convolution(t[0], t[1], int64_t{100}, t[2], {2, 1}, {1, 2}, {1, 2}, groups)};
    });
  }
}

TEST(CudaQuantizedTest, FourBits) {
  SimulatedEngine engine;
  const Tensor fours = ops::abs(filled({67, 64}, DType::kInt32));
  for (const int64_t m : {3, 70}) {
    expect_cpu_and_gpu_agree({filled({m, 64}), fours, filled({2, 67, 2})}, 1e-5, [](const Tensors& t) {
      const Tensor packed = ops::int4_pack(t[1]);
      return Tensors{packed, ops::int4_weight_mm(t[0], packed, 32, t[2])};
    });
  }
}

TEST(CudaQuantizedTest, ObserversChangeTheirStates) {
  SimulatedEngine engine;
  for (const bool per_row : {false, true}) {
    const int64_t count = per_row ? 7 : 1;
    const Tensors inputs{filled({5, 7}),
                         values({2}, {1, 1}),
                         testing::constant({count}, -0.5),
                         testing::constant({count}, -INFINITY),
                         filled({count}),
                         filled({count}, DType::kInt32)};
    expect_cpu_and_gpu_agree(inputs, 0, [&](const Tensors& t) {
      ops::observe_moving_average(t[0], t[1], t[2], t[3], t[4], t[5], 0.3, -128, 127, 1, per_row, per_row);
      return Tensors(ops::choose_quantization_params(t[0], 0, 255));
    });
  }
}

TEST(CudaQuantizedTest, InvalidOperands) {
  SimulatedEngine engine;
  const Tensor x = bytes({2, 3}, DType::kUInt8), w = bytes({2, 3}, DType::kInt8);
  const auto multiply = [](const Tensors& t) { return Tensors{ops::int8_linear(t[0], t[1], t[2], t[3])}; };
  const Tensor zero = testing::constant({2}, 0, DType::kInt32);
  expect_both_fail(engine, "expected a zero point in the range of the input's dtype, got 256",
                   {x, w, values({1}, {256}, DType::kInt64), zero}, multiply);
  expect_both_fail(engine, "expected weight_zero_point to be integers of 32 bits, got 2.14748e+09",
                   {x, w, values({1}, {0}, DType::kInt64), values({2}, {1, 2147483648.0}, DType::kInt64)}, multiply);
  expect_both_fail(engine, "expected weight_zero_point to be integers of 32 bits, got 1.5",
                   {x, w, values({1}, {0}, DType::kInt64), values({2}, {1, 1.5}, DType::kFloat32)}, multiply);
  expect_both_fail(engine, "expected a tensor of finite numbers, got the range from nan to nan",
                   {values({2}, {1, NAN})},
                   [](const Tensors& t) { return Tensors(ops::choose_quantization_params(t[0], 0, 255)); });
}

}  // namespace
}  // namespace tt::cuda
