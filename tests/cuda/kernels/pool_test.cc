#include <gtest/gtest.h>

#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

struct Case {
  Sizes input;
  Sizes kernel, stride, padding, dilation;
  bool ceil;
};
const Case kCases[] = {
    {{2, 3, 4, 6}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false}, {{3, 5, 5}, {3, 2}, {1, 2}, {1, 1}, {1, 1}, false},
    {{1, 2, 7, 8}, {2, 3}, {2, 1}, {0, 1}, {2, 1}, true},  {{2, 6, 5}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, true},
    {{1, 1, 9, 9}, {3, 3}, {5, 4}, {0, 0}, {3, 2}, false}, {{0, 3, 4, 4}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false},
};

TEST(CudaPoolTest, Max) {
  SimulatedEngine engine;
  for (DType dtype :
       {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kUInt8}) {
    for (const Case& c : kCases) {
      expect_cpu_and_gpu_agree({filled(c.input, dtype)}, tolerance_of(dtype), [&](const Tensors& t) {
        return ops::max_pool2d_with_indices(t[0], c.kernel, c.stride, c.padding, c.dilation, c.ceil);
      });
    }
  }
}

TEST(CudaPoolTest, MaxOfNans) {
  SimulatedEngine engine;
  const Tensor x = filled({1, 4, 4});
  testing::put(x, 5, NAN);
  const Tensors got = ops::max_pool2d_with_indices(on_gpu(x), {2, 2}, Sizes{2, 2}, {0, 0}, {1, 1});
  EXPECT_TRUE(std::isnan(testing::at(copy_to_cpu(got[0]), 0)));
  EXPECT_EQ(testing::at(copy_to_cpu(got[1]), 0), 5);
}

TEST(CudaPoolTest, MaxBackward) {
  SimulatedEngine engine;
  for (DType dtype : kFloatings) {
    const Tensor index = values({2, 2, 3}, {0, 3, 3, 11, 3, 0, 5, 6, 7, 8, 9, 10}, DType::kInt64);
    expect_cpu_and_gpu_agree({filled({2, 2, 3}, dtype), index}, tolerance_of(dtype), [&](const Tensors& t) {
      return Tensors{ops::max_pool2d_backward(t[0], t[1], {2, 3, 4})};
    });
  }
}

TEST(CudaPoolTest, MaxBackwardChecksItsIndices) {
  SimulatedEngine engine;
  const Tensor g = on_gpu(filled({1, 1, 2}));
  const Tensor index = on_gpu(values({1, 1, 2}, {0, 12}, DType::kInt64));
  const Tensor dx = ops::max_pool2d_backward(g, index, {1, 3, 4});
  try {
    copy_to_cpu(dx);
    ADD_FAILURE() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIndex);
    EXPECT_NE(error.message().find("index 12 is outside a plane of 12 elements"), std::string::npos) << error.message();
  }
}

TEST(CudaPoolTest, Average) {
  SimulatedEngine engine;
  for (DType dtype : kFloatings) {
    for (const Case& c : kCases) {
      for (bool counted : {true, false}) {
        for (std::optional<int64_t> divisor : {std::optional<int64_t>(), std::optional<int64_t>(3)}) {
          expect_cpu_and_gpu_agree({filled(c.input, dtype)}, tolerance_of(dtype), [&](const Tensors& t) {
            const Tensor y = ops::avg_pool2d(t[0], c.kernel, c.stride, c.padding, c.ceil, counted, divisor);
            const Tensor dx =
                ops::avg_pool2d_backward(y, t[0].sizes(), c.kernel, c.stride, c.padding, c.ceil, counted, divisor);
            return Tensors{y, dx};
          });
        }
      }
    }
  }
}

TEST(CudaPoolTest, Adaptive) {
  SimulatedEngine engine;
  const std::pair<Sizes, Sizes> shapes[] = {
      {{2, 3, 4, 6}, {1, 1}}, {{3, 5, 7}, {2, 3}}, {{1, 1, 4, 4}, {6, 2}}, {{2, 9, 8}, {4, 3}}};
  for (DType dtype : kFloatings) {
    for (const auto& [sizes, size] : shapes) {
      expect_cpu_and_gpu_agree({filled(sizes, dtype)}, tolerance_of(dtype), [size = size](const Tensors& t) {
        const Tensor y = ops::adaptive_avg_pool2d(t[0], size);
        const Tensors most = ops::adaptive_max_pool2d_with_indices(t[0], size);
        return Tensors{y, ops::adaptive_avg_pool2d_backward(y, t[0].sizes()), most[0], most[1]};
      });
    }
  }
}

}  // namespace
}  // namespace tt::cuda
