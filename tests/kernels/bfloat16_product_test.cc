#include "kernels/cpu/blas/bfloat16_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <tuple>
#include <vector>

#include "engine/device/parallel.h"

namespace tt::cpu {
namespace {

std::vector<BFloat16> numbers(int64_t n, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<BFloat16> result(static_cast<size_t>(n));
  for (BFloat16& x : result) x = normal(generator);
  return result;
}

class BFloat16ProductTest : public ::testing::TestWithParam<std::tuple<bool, bool, bool>> {
 protected:
  void SetUp() override {
    if (!has_bfloat16_products()) GTEST_SKIP() << "this CPU has no products of bfloat16";
  }
  // Rows of a and b are 3 elements longer than needed.
  void expect_product(int64_t m, int64_t n, int64_t k) {
    const auto [a_transposed, b_transposed, add] = GetParam();
    SCOPED_TRACE(::testing::Message() << m << " x " << n << " x " << k);
    const int64_t a_step = (a_transposed ? m : k) + 3, b_step = (b_transposed ? k : n) + 3;
    const std::vector<BFloat16> a = numbers(std::max(m, k) * a_step, 1), b = numbers(std::max(n, k) * b_step, 2);
    std::vector<float> c(static_cast<size_t>(m * n), 1e30f);
    if (add) std::fill(c.begin(), c.end(), 0.5f);
    const PoolLease alone(1);
    bfloat16_product({m, n, k, a.data(), a_step, a_transposed, b.data(), b_step, b_transposed, c.data(), add});
    double worst = 0;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = add ? 0.5 : 0;
        for (int64_t p = 0; p < k; ++p) {
          const float left = a[static_cast<size_t>(a_transposed ? p * a_step + i : i * a_step + p)];
          const float right = b[static_cast<size_t>(b_transposed ? j * b_step + p : p * b_step + j)];
          sum += static_cast<double>(left) * right;
        }
        worst = std::max(worst, std::abs(sum - c[static_cast<size_t>(i * n + j)]));
      }
    }
    EXPECT_LT(worst, 1e-4 * std::sqrt(static_cast<double>(k) + 1));
  }
};

// Products that add and products that do not alternate here, because GetParam() changes between tests of one process.
TEST_P(BFloat16ProductTest, EqualsSumsInDouble) {
  for (const int64_t m : {1, 16, 64, 100, 128}) {
    for (const int64_t n : {1, 33, 64, 256}) {
      for (const int64_t k : {1, 2, 17, 64, 128}) expect_product(m, n, k);
    }
  }
}

TEST_P(BFloat16ProductTest, EmptySizes) {
  expect_product(0, 4, 4);
  expect_product(4, 0, 4);
  expect_product(4, 5, 0);
}

INSTANTIATE_TEST_SUITE_P(Layouts, BFloat16ProductTest,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool(), ::testing::Bool()));

}  // namespace
}  // namespace tt::cpu
