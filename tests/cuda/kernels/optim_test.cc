#include <gtest/gtest.h>

#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

// Returns `count` parameters, one of which has more elements than a thread group processes. 300 need several launches.
Tensors parameters_of(int count, DType dtype) {
  Tensors all;
  for (int i = 0; i < count; ++i)
    all.push_back(filled(i == 1 ? Sizes{3, 1500} : i == 2 ? Sizes{0} : Sizes{i % 5 + 1, 3}, dtype));
  return all;
}
Tensors like(const Tensors& list, bool magnitudes = false) {
  Tensors all;
  for (const Tensor& t : list) {
    all.push_back(filled(t.sizes(), t.dtype()));
    for (int64_t i = 0; magnitudes && i < t.numel(); ++i)
      testing::put(all.back(), i, std::fabs(testing::at(all.back(), i)));
  }
  return all;
}
Tensors part(const Tensors& all, size_t index, size_t count) {
  return Tensors(all.begin() + static_cast<ptrdiff_t>(index * count),
                 all.begin() + static_cast<ptrdiff_t>((index + 1) * count));
}
Tensors joined(std::initializer_list<Tensors> lists) {
  Tensors all;
  for (const Tensors& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

TEST(CudaOptimTest, Sgd) {
  SimulatedEngine engine;
  for (DType dtype : kFloatings) {
    for (size_t count : {3, 300}) {
      const Tensors params = parameters_of(static_cast<int>(count), dtype);
      for (double momentum : {0.0, 0.9}) {
        for (bool first : {true, false}) {
          expect_cpu_and_gpu_agree(joined({params, like(params), like(params)}), tolerance_of(dtype),
                                   [&](const Tensors& t) {
                                     const Tensors buffers = momentum == 0 ? Tensors() : part(t, 2, count);
                                     ops::sgd_step(part(t, 0, count), part(t, 1, count), buffers, 0.1, momentum, 0.2,
                                                   0.01, momentum != 0 && first, first, first);
                                     return Tensors();
                                   });
        }
      }
    }
  }
}

TEST(CudaOptimTest, Adam) {
  SimulatedEngine engine;
  for (DType dtype : kFloatings) {
    for (size_t count : {3, 40}) {
      const Tensors params = parameters_of(static_cast<int>(count), dtype);
      for (bool amsgrad : {false, true}) {
        for (bool decoupled : {false, true}) {
          expect_cpu_and_gpu_agree(joined({params, like(params), like(params), like(params, true), like(params, true)}),
                                   2 * tolerance_of(dtype), [&](const Tensors& t) {
                                     ops::adam_step(part(t, 0, count), part(t, 1, count), part(t, 2, count),
                                                    part(t, 3, count), amsgrad ? part(t, 4, count) : Tensors(), 3, 0.1,
                                                    0.9, 0.99, 1e-3, 0.01, decoupled, amsgrad, false);
                                     return Tensors();
                                   });
        }
      }
    }
  }
}

// Parameters that are not aligned for vector loads.
TEST(CudaOptimTest, UnalignedSteps) {
  SimulatedEngine engine;
  for (DType dtype : kFloatings) {
    const Tensors inputs = {filled({4101}, dtype), filled({4100}, dtype), filled({4100}, dtype)};
    expect_cpu_and_gpu_agree(inputs, tolerance_of(dtype), [](const Tensors& t) {
      ops::sgd_step({ops::narrow(t[0], 0, 1, 4100)}, {t[1]}, {t[2]}, 0.1, 0.9, 0.2, 0.01, false, false, false);
      return Tensors();
    });
  }
}

// The engine's part of gradient scaling: skipped steps, counted steps, the check for infinities, the next scale.
TEST(CudaOptimTest, GradientScaling) {
  SimulatedEngine engine;
  for (float found : {0.0f, 1.0f}) {
    const Tensors numbers = {filled({8}),
                             filled({8}),
                             filled({8}),
                             like({filled({8})}, true)[0],
                             tt::testing::constant({}, found, DType::kFloat32),
                             tt::testing::constant({}, 2, DType::kFloat32)};
    expect_cpu_and_gpu_agree(numbers, 1e-5, [](const Tensors& t) {
      ops::adam_step({t[0]}, {t[1]}, {t[2]}, {t[3]}, {}, 1, 0.1, 0.9, 0.99, 1e-3, 0.01, false, false, false, t[4],
                     t[5]);
      ops::sgd_step({t[0]}, {t[1]}, {}, 0.1, 0, 0, 0, false, false, false, t[4]);
      return Tensors();
    });
    const Tensors scale = {tt::testing::constant({}, 4, DType::kFloat32), tt::testing::constant({}, 1, DType::kInt32),
                           tt::testing::constant({}, found, DType::kFloat32)};
    expect_cpu_and_gpu_agree(scale, 0, [](const Tensors& t) {
      ops::amp_update_scale(t[0], t[1], t[2], 2.0, 0.5, 2);
      return Tensors();
    });
  }
  for (double value : {1.0, static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    const Tensors grads = {filled({5000}), tt::testing::constant({3}, value, DType::kFloat32),
                           filled({7}, DType::kFloat16), tt::testing::constant({}, 0, DType::kFloat32),
                           tt::testing::constant({}, 0.5, DType::kFloat32)};
    expect_cpu_and_gpu_agree(grads, 1e-3, [](const Tensors& t) {
      ops::amp_unscale({t[0], t[1], t[2]}, t[3], t[4]);
      return Tensors{t[3]};
    });
  }
}

TEST(CudaOptimTest, AdamRejectsMismatchedLists) {
  SimulatedEngine engine;
  const Tensor p = on_gpu(filled({3})), small = on_gpu(filled({2}));
  EXPECT_THROW(ops::sgd_step({p}, {small}, {}, 0.1, 0, 0, 0, false, false, false), Error);
}

}  // namespace
}  // namespace tt::cuda
