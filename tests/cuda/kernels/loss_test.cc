#include <gtest/gtest.h>

#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

// The message of the error that reading `t` throws.
std::string fault_of(const Tensor& t) {
  try {
    copy_to_cpu(t);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIndex);
    return error.message();
  }
  return "nothing was thrown";
}

struct Shape {
  Sizes input, target;
};

Tensor targets_below(int64_t classes, SizesView sizes) {
  Tensor target = empty(sizes, DType::kInt64, Device{});
  for (int64_t i = 0; i < target.numel(); ++i) testing::put(target, i, static_cast<double>((i * 7 + 1) % classes));
  return target;
}

TEST(CudaLossTest, NllLoss) {
  SimulatedEngine engine;
  const Shape shapes[] = {{{5, 3}, {5}}, {{2, 3, 4}, {2, 4}}, {{3}, {}}, {{300, 3}, {300}}};
  for (DType dtype : kFloatings) {
    for (const Shape& shape : shapes) {
      const Tensor target = targets_below(3, shape.target);
      for (bool weighted : {false, true}) {
        for (const char* reduction : {"none", "sum", "mean"}) {
          const Tensor weight = weighted ? values({3}, {0.5, 2, 1}, dtype) : Tensor();
          expect_cpu_and_gpu_agree(
              {filled(shape.input, dtype), target, weight}, tolerance_of(dtype), [&](const Tensors& t) {
                Tensors all = ops::nll_loss_forward(t[0], t[1], t[2], 2, reduction);
                all.push_back(ops::nll_loss_backward(all[0], t[1], t[2], all[1], shape.input, 2, reduction));
                return all;
              });
        }
      }
    }
  }
}

TEST(CudaLossTest, CrossEntropy) {
  SimulatedEngine engine;
  const Shape shapes[] = {{{5, 3}, {5}},    {{2, 3, 4}, {2, 4}},       {{3}, {}},
                          {{70, 40}, {70}}, {{2, 3, 1500}, {2, 1500}}, {{0, 3}, {0}}};
  for (DType dtype : kFloatings) {
    for (const Shape& shape : shapes) {
      const int64_t classes = shape.input.size() == 1 ? shape.input[0] : shape.input[1];
      const Tensor target = targets_below(classes, shape.target);
      for (const char* reduction : {"none", "sum", "mean"}) {
        for (bool weighted : {false, true}) {
          const Tensor weight = weighted ? ops::abs(filled({classes}, dtype)) : Tensor();
          const Tensor grad = filled(reduction == std::string("none") ? shape.target : Sizes(), dtype);
          const Tensors inputs{ops::mul(filled(shape.input, dtype), int64_t{8}), target, weight, grad};
          for (double smoothing : {0.0, 0.3, 1.0}) {
            expect_cpu_and_gpu_agree(inputs, tolerance_of(dtype), [&](const Tensors& t) {
              Tensors all = ops::cross_entropy_forward(t[0], t[1], t[2], 2, reduction, smoothing);
              all.push_back(
                  ops::cross_entropy_backward(t[3], t[0], t[1], t[2], all[1], all[2], all[3], 2, reduction, smoothing));
              return all;
            });
          }
        }
      }
    }
  }
}

TEST(CudaLossTest, TargetOutOfBounds) {
  SimulatedEngine engine;
  const Tensor x = on_gpu(filled({2, 3})), target = on_gpu(values({2}, {1, 7}, DType::kInt64));
  for (const char* reduction : {"none", "mean"}) {
    for (const Tensor& loss :
         {ops::nll_loss(x, target, {}, -100, reduction), ops::cross_entropy(x, target, {}, -100, reduction, 0)}) {
      EXPECT_NE(fault_of(loss).find("Target 7 is out of bounds."), std::string::npos) << fault_of(loss);
    }
  }
  EXPECT_EQ(testing::at(copy_to_cpu(x), 0), testing::at(copy_to_cpu(x), 0));
}

TEST(CudaLossTest, Embedding) {
  SimulatedEngine engine;
  for (DType dtype : kFloatings) {
    for (DType index : {DType::kInt64, DType::kInt32}) {
      const Tensor at = values({2, 4}, {0, 4, 3, 3, 1, 0, 0, 2}, index);
      expect_cpu_and_gpu_agree(
          {filled({5, 3}, dtype), at, filled({2, 4, 3}, dtype)}, tolerance_of(dtype), [](const Tensors& t) {
            return Tensors{ops::embedding(t[0], t[1], 3), ops::embedding_backward(t[2], t[1], 5, 3)};
          });
    }
  }
  expect_cpu_and_gpu_agree({filled({5, 3}), empty(Sizes{0}, DType::kInt64, Device{})}, 0,
                           [](const Tensors& t) { return Tensors{ops::embedding(t[0], t[1])}; });
}

TEST(CudaLossTest, EmbeddingOutOfRange) {
  SimulatedEngine engine;
  const Tensor at = on_gpu(values({2}, {1, -1}, DType::kInt64));
  EXPECT_NE(fault_of(ops::embedding(on_gpu(filled({5, 3})), at)).find("index out of range in self"), std::string::npos);
  EXPECT_NE(fault_of(ops::embedding_backward(on_gpu(filled({2, 3})), at, 5, -1)).find("index out of range"),
            std::string::npos);
}

TEST(CudaLossTest, Pad) {
  SimulatedEngine engine;
  const std::pair<Sizes, Sizes> cases[] = {
      {{3, 4}, {1, 2}}, {{2, 3, 4}, {1, 0, 2, 1}}, {{3, 4}, {-1, 1, 0, -2}}, {{0, 2}, {1, 1, 1, 1}}};
  for (DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kInt64}) {
    for (const auto& [sizes, pad] : cases) {
      expect_cpu_and_gpu_agree({filled(sizes, dtype)}, 0,
                               [pad = pad](const Tensors& t) { return Tensors{ops::pad(t[0], pad, int64_t{3})}; });
    }
  }
}

}  // namespace
}  // namespace tt::cuda
