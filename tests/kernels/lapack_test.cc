// LAPACK in the kernels: threads, and integer limits. tests/python/functions/test_linalg.py tests its results.
#include "kernels/cpu/lapack/matrices.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "engine/schema/error.h"
#include "kernels/cpu/kernels.h"
#include "tests/kernels/backend.h"
#include "tests/kernels/samples.h"

extern "C" int openblas_get_parallel();

namespace tt::cpu {
namespace {

TEST(LapackTest, LibraryUsesPoolThreads) {
  EXPECT_EQ(openblas_get_parallel(), 2) << "OpenBLAS must be the OpenMP variant";
}

// The factors of a large matrix, computed with all threads of the pool if available, or of a batch.
std::vector<double> factors(const Tensor& input) {
  const Sizes& sizes = input.sizes();
  const Sizes batch(sizes.begin(), sizes.end() - 2);
  Sizes rows(sizes.begin(), sizes.end() - 1);
  Tensor lu = empty(sizes, input.dtype(), Device()), info = empty(batch, DType::kInt32, Device());
  Tensor pivots = empty(rows, DType::kInt32, Device());
  lu_factored(input, "", lu, pivots, info);
  return values_of(lu);
}

TEST(LapackTest, ConcurrentCallersGetEqualResults) {
  testing::have_backend();
  const Tensor inputs[] = {random_tensor({300, 300}, DType::kFloat64), random_tensor({500, 12, 12}, DType::kFloat64)};
  const std::vector<double> wanted[] = {factors(inputs[0]), factors(inputs[1])};
  std::vector<std::thread> callers;
  for (int c = 0; c < 6; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        const std::vector<double> got = factors(inputs[i % 2]);
        for (size_t at = 0; at < got.size(); ++at) ASSERT_NEAR(got[at], wanted[i % 2][at], 1e-8);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// OpenBLAS has buffers for 128 threads, and crashes with hundreds.
TEST(LapackTest, HundredsOfConcurrentCallersFinish) {
  testing::have_backend();
  const Tensor input = random_tensor({120, 120}, DType::kFloat64);
  const std::vector<double> wanted = factors(input);
  std::atomic<int> served{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 800; ++c) {
    callers.emplace_back([&] { served += factors(input).size() == wanted.size(); });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(served, 800);
}

constexpr int64_t kFar = int64_t{1} << 31;

template <typename Make>
void expect_refused(Make make) {
  try {
    make();
    FAIL() << "not refused";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kRuntime);
    EXPECT_NE(std::string(e.what()).find("32-bit"), std::string::npos) << e.what();
  }
}

TEST(LapackTest, RejectsSizesBeyondLapackIntegers) {
  expect_refused([] { Lu<float>(kFar, 1); });
  expect_refused([] { Lu<float>(1, kFar); });
  expect_refused([] { cholesky<double>(nullptr, kFar); });
  expect_refused([] { solve_triangular<double>(nullptr, nullptr, 1, kFar, true, false, false); });
  expect_refused([] { Householder<Complex<float>>(kFar, 2, 0); });
  expect_refused([] { Eig<float>(kFar / 32, true); });
  expect_refused([] { Exponential<float> exponential(kFar); });
}

TEST(LapackTest, RejectsWorkspacesBeyondLapackIntegers) {
  expect_refused([] { Eigh<float>(32768, false, true); });  // workspace of 1 + 6 n + 2 n^2
  expect_refused([] { Svd<double>(24000, 24000, SingularVectors::kThin); });
  expect_refused([] { Svd<Complex<float>>(20000000, 100, SingularVectors::kThin); });
}

}  // namespace
}  // namespace tt::cpu
