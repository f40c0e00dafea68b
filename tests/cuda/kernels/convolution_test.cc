#include <gtest/gtest.h>

#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

struct Case {
  Sizes x, w, y;
  Sizes stride, padding, dilation;
  int64_t groups;
};
const Case kCases[] = {
    {{2, 4, 5, 6}, {6, 2, 3, 2}, {2, 6, 5, 2}, {1, 2}, {1, 0}, {1, 2}, 2},
    {{2, 3, 7}, {4, 3, 2}, {2, 4, 4}, {2}, {1}, {1}, 1},
    {{1, 2, 4, 5, 3}, {3, 2, 2, 3, 1}, {1, 3, 3, 3, 5}, {1, 2, 1}, {0, 1, 1}, {1, 1, 3}, 1},
    {{2, 6, 5, 5}, {6, 1, 3, 3}, {2, 6, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 6},
    {{0, 2, 4}, {3, 2, 2}, {0, 3, 3}, {1}, {0}, {1}, 1},
    {{2, 0, 4}, {3, 0, 2}, {2, 3, 3}, {1}, {0}, {1}, 1},
};

TEST(CudaConvolutionTest, ForwardAndGradients) {
  SimulatedEngine engine;
  for (DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kInt32}) {
    for (const Case& c : kCases) {
      expect_cpu_and_gpu_agree(
          {filled(c.x, dtype), filled(c.w, dtype), filled({c.w[0]}, dtype), filled(c.y, dtype)}, tolerance_of(dtype),
          [&](const Tensors& t) {
            return Tensors{ops::convolution(t[0], t[1], t[2], c.stride, c.padding, c.dilation, c.groups),
                           ops::convolution(t[0], t[1], Tensor(), c.stride, c.padding, c.dilation, c.groups),
                           ops::convolution_input(t[3], t[1], c.x, c.stride, c.padding, c.dilation, c.groups),
                           ops::convolution_weight(t[3], t[0], c.w, c.stride, c.padding, c.dilation, c.groups)};
          },
          to_string(c.x));
    }
  }
}

TEST(CudaConvolutionTest, Transposed) {
  SimulatedEngine engine;
  expect_cpu_and_gpu_agree({filled({1, 4, 2, 3}), filled({4, 1, 2, 2}), filled({2})}, 1e-5, [](const Tensors& t) {
    return Tensors{ops::conv_transpose2d(t[0], t[1], t[2], {1, 2}, {0, 0}, {0, 0}, 2, {2, 1})};
  });
}

}  // namespace
}  // namespace tt::cuda
