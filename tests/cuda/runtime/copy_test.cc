#include <gtest/gtest.h>

#include "kernels/cuda/launch/fast_divmod.h"
#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

TEST(CopyTest, RoundTrip) {
  SimulatedEngine engine;
  const Tensor host = ops::arange(int64_t{12}, DType::kFloat32, Device{});
  const Tensor there = ops::to_device(host, engine.gpu());
  const Tensor back = ops::to_device(there, Device{});
  EXPECT_EQ(back.data_as<float>()[11], 11);
}

constexpr DType kAll[] = {DType::kBool,  DType::kUInt8,   DType::kInt8,     DType::kInt16,   DType::kInt32,
                          DType::kInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};

TEST(CopyTest, EveryCast) {
  SimulatedEngine engine;
  for (DType from : kAll) {
    const Tensor plain = testing::filled({5, 9}, from), across = testing::transposed(plain, 0, 1);
    const Tensor gpu_plain = copy_to_device(plain, engine.gpu()), gpu_across = testing::transposed(gpu_plain, 0, 1);
    for (DType to : kAll) {
      const std::string what = std::string(name(from)) + " " + std::string(name(to));
      expect_same(ops::to_dtype(gpu_plain, to), ops::to_dtype(plain, to), 0, what);
      expect_same(ops::to_dtype(gpu_across, to), ops::to_dtype(across, to), 0, what + " transposed");
    }
  }
}

TEST(CopyTest, NarrowIntegersWrapAround) {
  SimulatedEngine engine;
  for (DType from : {DType::kInt64, DType::kFloat32, DType::kFloat64}) {
    const Tensor large = testing::values({5}, {300, -129, 65536, 255, 70000}, from);
    for (DType to : {DType::kUInt8, DType::kInt8, DType::kInt16}) {
      expect_same(ops::to_dtype(copy_to_device(large, engine.gpu()), to), ops::to_dtype(large, to), 0);
    }
  }
}

// Views that the different kernels copy: rows of words of each width, transposes with partial tiles, and irregular
// strides.
TEST(CopyTest, EveryLayout) {
  SimulatedEngine engine;
  for (DType dtype : {DType::kUInt8, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const Tensor matrix = testing::filled({48, 80}, dtype), odd = testing::filled({37, 53}, dtype);
    const Tensor cube = testing::filled({6, 20, 33}, dtype);
    const Tensor views[] = {
        testing::transposed(matrix, 0, 1),
        testing::transposed(odd, 0, 1),
        testing::transposed(cube, 0, 2),
        testing::transposed(cube, 1, 2),
        testing::transposed(cube, 0, 1),
        view_of(matrix, {{48, 40}, {80, 1}, 0, true}),
        view_of(matrix, {{48, 40}, {80, 1}, 20, true}),
        view_of(matrix, {{48, 6}, {80, 1}, 2, true}),
        view_of(matrix, {{48, 7}, {80, 1}, 3, true}),
        view_of(matrix, {{20, 30}, {160, 2}, 1, true}),
        view_of(matrix, {{16, 48, 80}, {0, 80, 1}, 0, true}),
        view_of(matrix, {{80, 48}, {1, 80}, 0, true}),
        view_of(matrix, {{70, 40}, {1, 80}, 81, true}),
    };
    for (const Tensor& view : views) {
      const Tensor source = copy_to_device(view, engine.gpu());
      Tensor target = ops::zeros(view.sizes(), dtype, Device{}), gpu_target = copy_to_device(target, engine.gpu());
      copy_into(target, view);
      copy_into(gpu_target, source);
      expect_same(gpu_target, target, 0, std::string(name(dtype)));
      // The reverse: copies rows into the view, unless its elements overlap.
      if (view.strides()[0] == 0) continue;
      const Tensor here = testing::filled(view.sizes(), dtype), base = copy_to_device(view, engine.gpu());
      copy_into(base, copy_to_device(here, engine.gpu()));
      copy_into(view, here);
      expect_same(base, view, 0, std::string(name(dtype)) + " back");
    }
  }
}

TEST(CopyTest, Fills) {
  SimulatedEngine engine;
  for (DType dtype : kAll) {
    for (double value : {0.0, -0.0, 1.0, 2.5}) {
      const Tensor want = ops::full({{3, 7}}, value, dtype, Device{});
      expect_same(ops::full({{3, 7}}, value, dtype, engine.gpu()), want, 0, std::string(name(dtype)));
    }
  }
}

TEST(CopyTest, FastDivisionEqualsDivision) {
  for (uint32_t by : {1u, 2u, 3u, 7u, 10u, 641u, 65536u, 1000003u, 0x7fffffffu}) {
    const FastDivmod divider(by);
    for (uint32_t n : {0u, 1u, by - 1, by, 12345678u, 0x7ffffffeu, 0x7fffffffu}) EXPECT_EQ(divider.quotient(n), n / by);
  }
}

}  // namespace
}  // namespace tt::cuda
