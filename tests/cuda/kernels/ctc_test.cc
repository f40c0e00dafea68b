// ctc_loss on CUDA, compared with the CPU: loss, alignments and gradient.
#include <gtest/gtest.h>

#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

constexpr int64_t kTimes = 7, kBatch = 4, kClasses = 5;

struct Sequences {
  Tensor targets;
  Sizes input_lengths, target_lengths;
};

Tensors loss_and_gradient(const Tensor& x, const Tensor& targets, const Sequences& q, int64_t blank) {
  Tensors all = ops::ctc_loss_forward(x, targets, q.input_lengths, q.target_lengths, blank);
  all.push_back(ops::ctc_loss_backward(all[0], x, targets, q.input_lengths, q.target_lengths, all[0], all[1], blank));
  return all;
}

TEST(CudaCtcTest, LossAndGradient) {
  SimulatedEngine engine;
  // Repeated labels, no labels, too many labels, no time steps; padded or concatenated.
  const Sequences all[] = {
      {values({4, 3}, {1, 2, 3, 4, 4, 2, 1, 1, 1, 3, 9, -5}, DType::kInt64), {7, 5, 4, 3}, {3, 3, 3, 1}},
      {values({6}, {1, 1, 2, 3, 4, 2}, DType::kInt32), {7, 0, 6, 0}, {2, 0, 3, 1}}};
  for (const DType dtype : kFloatings) {
    const Tensor x = ops::log_softmax(filled({kTimes, kBatch, kClasses}, dtype), -1);
    for (const Sequences& q : all) {
      expect_cpu_and_gpu_agree({x, q.targets}, tolerance_of(dtype),
                               [&](const Tensors& t) { return loss_and_gradient(t[0], t[1], q, 0); });
    }
    const Sequences& first = all[0];
    const Tensor labels = values({4, 3}, {1, 2, 3, 0, 0, 2, 1, 1, 1, 3, 9, -5}, DType::kInt64);
    expect_cpu_and_gpu_agree(
        {x, labels}, tolerance_of(dtype), [&](const Tensors& t) { return loss_and_gradient(t[0], t[1], first, 4); },
        "another blank");
  }
}

TEST(CudaCtcTest, LabelsOutOfRange) {
  SimulatedEngine engine;
  const Tensor x = filled({kTimes, 2, kClasses});
  for (const double label : {5.0, -1.0}) {
    expect_both_fail(engine, "targets must be in [0, 5), got ", {x, values({2, 2}, {1, 2, 3, label}, DType::kInt64)},
                     [](const Tensors& t) {
                       return ops::ctc_loss_forward(t[0], t[1], {{7, 7}}, {{2, 2}}, 0);
                     });
  }
}

}  // namespace
}  // namespace tt::cuda
