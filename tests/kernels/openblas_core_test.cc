// OpenBLAS's kernels use the machine's vector units, also on a processor that its release does not know.
#include "kernels/cpu/blas/openblas_core.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cpu/blas/routines.h"

namespace tt::cpu {
namespace {

TEST(OpenBlasCoreTest, ReplacesKernelsWithoutVectorUnitsOnly) {
  struct Row {
    std::string_view detected;
    VectorUnits units;
    std::string_view better;
  };
  const Row rows[] = {
      {"Prescott", {true, true}, "SkylakeX"}, {"prescott", {true, false}, "Haswell"},
      {"Core2", {false, false}, ""},          {"Sandybridge", {true, true}, "SkylakeX"},
      {"Nehalem", {true, false}, "Haswell"},  {"Unknown", {true, true}, "SkylakeX"},
      {"Haswell", {true, true}, ""},          {"Zen", {true, true}, ""},
      {"SkylakeX", {true, true}, ""},         {"Cooperlake", {true, true}, ""},
      {"Sapphirerapids", {true, true}, ""},   {"", {true, true}, ""},
  };
  for (const Row& row : rows) EXPECT_EQ(better_openblas_core(row.detected, row.units), row.better) << row.detected;
}

TEST(OpenBlasCoreTest, ProductsAreRightAfterTheChoice) {
  choose_openblas_core();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  EXPECT_EQ(better_openblas_core(openblas_core(), {avx2, false}), "");
  choose_openblas_core();  // changes nothing
  constexpr int n = 70;
  std::vector<double> a(n * n), b(n * n), c(n * n);
  for (int i = 0; i < n * n; ++i) {
    a[static_cast<size_t>(i)] = i % 13 - 6;
    b[static_cast<size_t>(i)] = i % 7 - 3;
  }
  lapack::gemm('N', 'N', n, n, n, a.data(), n, b.data(), n, c.data(), n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int k = 0; k < n; ++k) sum += a[static_cast<size_t>(k * n + i)] * b[static_cast<size_t>(j * n + k)];
      ASSERT_EQ(c[static_cast<size_t>(j * n + i)], sum);
    }
  }
}

}  // namespace
}  // namespace tt::cpu
