// Sizes that LAPACK's 32-bit integers cannot count are refused before memory is asked for.
#include "kernels/cpu/matrices.h"

#include <gtest/gtest.h>

#include "engine/rules/error.h"

namespace tt::cpu {
namespace {

constexpr int64_t kFar = int64_t{1} << 31;

template <typename Make>
void expect_refused(Make make) {
  try {
    make();
    FAIL() << "not refused";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kRuntime);
    EXPECT_NE(std::string(e.what()).find("32 bits"), std::string::npos) << e.what();
  }
}

TEST(MatricesTest, SizesBeyondLapacksIntegersAreRefused) {
  expect_refused([] { Lu<float>(kFar, 1); });
  expect_refused([] { Lu<float>(1, kFar); });
  expect_refused([] { cholesky<double>(nullptr, kFar); });
  expect_refused([] { solve_triangular<double>(nullptr, nullptr, 1, kFar, true, false, false); });
  expect_refused([] { Householder<Complex<float>>(kFar, 2, 0); });
  expect_refused([] { Eig<float>(kFar / 32, true); });
  expect_refused([] { Exponential<float> exponential(kFar); });
}

TEST(MatricesTest, WorkspacesBeyondThemAreRefused) {
  expect_refused([] { Eigh<float>(32768, false, true); });       // 1 + 6 n + 2 n^2
  expect_refused([] { Svd<double>(24000, 24000, SingularVectors::kThin); });
  expect_refused([] { Svd<Complex<float>>(20000000, 100, SingularVectors::kThin); });
}

}  // namespace
}  // namespace tt::cpu
