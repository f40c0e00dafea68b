// Tensor creation, for every dtype.

#include <cmath>

#include "engine/dispatch/ops.h"
#include "tests/kernels/backend.h"

namespace tt {
namespace {

using namespace testing;  // NOLINT: tensors.h

class Creation : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { have_backend(); }
};

constexpr DType kNumbers[] = {DType::kUInt8,   DType::kInt8,     DType::kInt16,   DType::kInt32,  DType::kInt64,
                              DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};

TEST_F(Creation, FillsEveryDtype) {
  for (DType dtype : kNumbers) {
    const Tensor t = ops::full({{5, 301}}, int64_t{3}, dtype, Device{});
    for (int64_t i = 0; i < t.numel(); ++i) ASSERT_EQ(at(t, i), 3) << name(dtype);
  }
  EXPECT_EQ(at(ops::full({{2}}, 0.5, DType::kBool, Device{}), 1), 1);
  EXPECT_EQ(at(ops::full({{2}}, 2.75, DType::kInt32, Device{}), 1), 2);
  EXPECT_TRUE(std::isnan(at(ops::full({{2}}, NAN, DType::kFloat16, Device{}), 0)));
  EXPECT_EQ(ops::full({{2}}, int64_t{1} << 60, DType::kInt64, Device{}).data_as<int64_t>()[1], int64_t{1} << 60);
  EXPECT_EQ(at(ops::full({{2}}, 1e300, DType::kFloat64, Device{}), 0), 1e300);
}

TEST_F(Creation, ArangeAndLinspace) {
  for (DType dtype : kNumbers) {
    const Tensor range = ops::arange_from(int64_t{2}, int64_t{50}, int64_t{3}, dtype, Device{});
    ASSERT_EQ(range.numel(), 16);
    for (int64_t i = 0; i < 16; ++i) ASSERT_EQ(at(range, i), 2 + 3 * i);
  }
  const Tensor down = ops::arange_from(1.0, -1.0, -0.5, DType::kFloat32, Device{});
  expect_close(down, values({4}, {1, 0.5, 0, -0.5}), 0);
  const Tensor line = ops::linspace(0.0, 1.0, 11, DType::kFloat64, Device{});
  for (int64_t i = 0; i < 11; ++i) EXPECT_NEAR(at(line, i), 0.1 * i, 1e-15);
  EXPECT_EQ(at(line, 10), 1.0);
  expect_close(ops::logspace(0.0, 3.0, 4, 10.0, DType::kFloat64, Device{}),
               values({4}, {1, 10, 100, 1000}, DType::kFloat64), 1e-12);
}

TEST_F(Creation, PutsOnesOnTheDiagonal) {
  for (Sizes sizes : {Sizes{3, 3}, Sizes{2, 5}, Sizes{5, 2}, Sizes{0, 4}}) {
    const Tensor t = ops::eye(sizes[0], sizes[1], DType::kInt64, Device{});
    for (int64_t r = 0; r < sizes[0]; ++r) {
      for (int64_t c = 0; c < sizes[1]; ++c) ASSERT_EQ(at(t, r * sizes[1] + c), r == c);
    }
  }
}

TEST_F(Creation, ReadsLiterals) {
  const float numbers[] = {1.5f, -2, 3};
  const std::string_view bytes(reinterpret_cast<const char*>(numbers), sizeof numbers);
  const Tensor t = ops::literal(bytes, {{3}}, DType::kFloat32, Device{});
  expect_close(t, values({3}, {1.5, -2, 3}), 0);
  EXPECT_THROW(ops::literal(bytes, {{4}}, DType::kFloat32, Device{}), Error);
}

TEST_F(Creation, ReplacesNaN) {
  for (DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const Tensor t = ops::nan_to_num(values({4}, {NAN, INFINITY, -INFINITY, 2}, dtype), 1.0, std::nullopt, -3.0);
    EXPECT_EQ(at(t, 0), 1);
    EXPECT_TRUE(std::isfinite(at(t, 1)) && at(t, 1) > 6e4);
    EXPECT_EQ(at(t, 2), -3);
    EXPECT_EQ(at(t, 3), 2);
  }
}

}  // namespace
}  // namespace tt
