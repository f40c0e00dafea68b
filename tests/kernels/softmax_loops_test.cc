#include "kernels/cpu/loops/softmax_loops.h"

#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/common/math/exponential.h"
#include "kernels/cpu/kernels.h"
#include "tests/kernels/tensors.h"

namespace tt::cpu {
namespace {

using namespace tt::testing;

int64_t place(const Vectors& v, int64_t vector, int64_t i) {
  return v.stride == 0 ? vector * v.n + i : i * v.stride + vector;
}

// Rows, then columns; lengths around multiples of the vector width.
const Vectors kShapes[] = {{1, 3, 0}, {10, 4, 0}, {64, 2, 0}, {257, 3, 0}, {1, 5, 5}, {7, 3, 3}, {12, 150, 150}};

template <typename T>
void check(DType dtype, double tolerance) {
  for (const Vectors& v : kShapes) {
    for (bool log : {false, true}) {
      Tensor x = filled({v.n * v.count}, dtype), y = filled({v.n * v.count}, dtype),
             want = filled({v.n * v.count}, DType::kFloat64);
      Tensor g = filled({v.n * v.count}, dtype), dx = filled({v.n * v.count}, dtype);
      Tensor want_dx = filled({v.n * v.count}, DType::kFloat64);
      softmax_vectors(v, log, x.data_as<T>(), y.data_as<T>());
      softmax_backward_vectors(v, log, g.data_as<T>(), y.data_as<T>(), dx.data_as<T>());
      for (int64_t c = 0; c < v.count; ++c) {
        double sum = 0, sum_g = 0, dot = 0;
        for (int64_t i = 0; i < v.n; ++i) sum += std::exp(at(x, place(v, c, i)));
        for (int64_t i = 0; i < v.n; ++i) {
          const double p = std::exp(at(x, place(v, c, i))) / sum;
          put(want, place(v, c, i), log ? std::log(p) : p);
          sum_g += at(g, place(v, c, i));
          dot += at(g, place(v, c, i)) * p;
        }
        for (int64_t i = 0; i < v.n; ++i) {
          const double p = std::exp(at(x, place(v, c, i))) / sum, gi = at(g, place(v, c, i));
          put(want_dx, place(v, c, i), log ? gi - p * sum_g : p * (gi - dot));
        }
      }
      expect_close(y, want, tolerance);
      expect_close(dx, want_dx, tolerance);
    }
  }
}

TEST(Softmax, RowsAndColumns) {
  check<float>(DType::kFloat32, 3e-6);
  check<double>(DType::kFloat64, 1e-12);
}

TEST(Softmax, LargeNumbersDoNotOverflow) {
  for (int64_t stride : {0, 1}) {
    Tensor x = values({3}, {1e30, 1e30, -1e30}), y = filled({3});
    softmax_vectors({3, 1, stride}, false, x.data_as<float>(), y.data_as<float>());
    expect_close(y, values({3}, {0.5, 0.5, 0}), 1e-6);
  }
}

TEST(Softmax, NaNAffectsItsVectorOnly) {
  for (int64_t stride : {0, 2}) {
    Tensor x = stride == 0 ? values({4}, {1, NAN, 1, 1}) : values({4}, {1, 1, NAN, 1}), y = filled({4});
    softmax_vectors({2, 2, stride}, false, x.data_as<float>(), y.data_as<float>());
    EXPECT_TRUE(std::isnan(at(y, 0)));
    EXPECT_EQ(at(y, 3), 0.5);
  }
}

// Rows of 16-bit elements, computed in float32.
// Arguments of all magnitudes, of both signs, and those around which results become 0, subnormal and infinite.
TEST(Softmax, ExponentialIsExactToTwoUnits) {
  std::vector<float> arguments = {-104.1F, -103.5F, -88.0F, -87.4F, -87.3F, 88.7F,
                                  88.8F,   89.5F,   1e30F,  -1e30F, 0.0F,   -0.0F};
  for (uint32_t bits = 0; bits < 0x7f80'0000U; bits += 10007) {
    for (uint32_t sign : {0U, 0x8000'0000U}) arguments.push_back(std::bit_cast<float>(bits | sign));
  }
  for (float x : arguments) {
    const double expected = std::exp(static_cast<double>(x));
    const float found = math::exponential(x);
    if (static_cast<float>(expected) == std::numeric_limits<float>::infinity()) {
      EXPECT_EQ(found, std::numeric_limits<float>::infinity()) << x;
      continue;
    }
    int exponent = 0;
    std::frexp(expected, &exponent);
    EXPECT_LE(std::abs(found - expected), 2 * std::ldexp(1.0, std::max(exponent - 24, -149))) << x;
  }
  EXPECT_EQ(math::exponential(-std::numeric_limits<float>::infinity()), 0);
  EXPECT_EQ(math::exponential(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(math::exponential(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(math::exponential(-std::numeric_limits<float>::quiet_NaN())));
}

TEST(Softmax, HalfEqualsRoundedFloat) {
  for (DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const Tensor x = filled({130, 700}, dtype), wide = filled({130, 700});
    for (int64_t i = 0; i < x.numel(); ++i) put(wide, i, at(x, i));
    for (auto kernel : {&softmax, &log_softmax}) {
      Tensor y = filled({130, 700}, dtype), want = filled({130, 700}), rounded = filled({130, 700}, dtype);
      kernel(x, 1, std::nullopt, y);
      kernel(wide, 1, std::nullopt, want);
      for (int64_t i = 0; i < y.numel(); ++i) put(rounded, i, at(want, i));
      expect_close(y, rounded, 0);
    }
  }
}

}  // namespace
}  // namespace tt::cpu
