// Fourier transforms: CUDA gives the CPU's results for every kind of length and layout.
#include <gtest/gtest.h>

#include "tests/cuda/compare.h"

namespace tt::cuda {
namespace {

using testing::transposed;

class FftTest : public ::testing::TestWithParam<DType> {
 protected:
  DType dtype() const { return GetParam(); }
  DType real() const { return to_real(dtype()); }
  // The largest result grows with the square root of the length; elements are compared relative to at least 1.
  double tolerance(int64_t n) const {
    return (dtype() == DType::kComplex64 ? 3e-6 : 5e-15) * std::sqrt(static_cast<double>(n));
  }

  // Forward and inverse, full and half spectra, along dimension `dim`.
  void expect_transforms(const Tensor& numbers, const Tensor& reals, int64_t dim) {
    const int64_t n = numbers.size(dim);
    const std::string what = to_string(numbers.sizes()) + " along " + std::to_string(dim);
    for (const bool forward : {true, false}) {
      expect_equal_on_gpu(
          engine_, what, {numbers}, [=](const Tensors& t) { return Tensors{ops::fft_c2c(t[0], {dim}, 0.5, forward)}; },
          tolerance(n));
    }
    expect_equal_on_gpu(
        engine_, what, {reals},
        [=](const Tensors& t) {
          const Tensor half = ops::fft_r2c(t[0], {dim}, 1.0);
          return Tensors{half, ops::fft_c2r(half, {dim}, 1.0 / static_cast<double>(n), n)};
        },
        tolerance(n));
  }
  SimulatedEngine engine_;
};

TEST_P(FftTest, EveryLength) {
  // One pass, several passes, small and large primes, with enough rows for several thread groups.
  for (int64_t n : {1,  2,  3,  4,   5,   6,    7,    8,    12,   16,   31,    30,     37,
                    64, 74, 97, 100, 243, 1024, 2048, 2187, 4096, 3001, 10000, 1 << 15}) {
    const int64_t lines = n <= 128 ? 70 : 3;
    expect_transforms(filled_any({lines, n}, dtype()), filled_any({lines, n}, real()), 1);
    if (HasFatalFailure()) return;
  }
}

TEST_P(FftTest, EveryLayout) {
  expect_transforms(filled_any({24, 70}, dtype()), filled_any({24, 70}, real()), 0);
  expect_transforms(filled_any({5, 4096, 3}, dtype()), filled_any({5, 4096, 3}, real()), 1);
  expect_transforms(filled_any({5, 41, 3}, dtype()), filled_any({5, 41, 3}, real()), 1);
  expect_transforms(transposed(filled_any({24, 7, 5}, dtype()), 0, 2), transposed(filled_any({24, 7, 5}, real()), 0, 2),
                    2);
  expect_transforms(filled_any({36}, dtype()), filled_any({36}, real()), 0);
  expect_transforms(filled_any({0, 4}, dtype()), filled_any({0, 4}, real()), 1);
}

TEST_P(FftTest, SeveralDimensions) {
  expect_equal_on_gpu(
      engine_, "whole", {filled_any({6, 5, 8}, dtype())},
      [](const Tensors& t) {
        return Tensors{ops::fft_c2c(t[0], {0, 2, 1}, 0.25, true)};
      },
      tolerance(240));
  expect_equal_on_gpu(
      engine_, "half", {filled_any({6, 5, 9}, real())},
      [](const Tensors& t) {
        const Tensor half = ops::fft_r2c(t[0], {0, 1, 2}, 1.0);
        return Tensors{half, ops::fft_c2r(half, {0, 1, 2}, 1.0, 9)};
      },
      tolerance(270 * 270));
}

INSTANTIATE_TEST_SUITE_P(Both, FftTest, ::testing::Values(DType::kComplex64, DType::kComplex128),
                         [](const auto& param) { return std::string(name(param.param)); });

}  // namespace
}  // namespace tt::cuda
