// Fourier transforms: CUDA gives the CPU's results for every kind of length and layout.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/session/graphs.h"
#include "tests/cuda/compare.h"
#include "tests/cuda/simulated/loader.h"

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
  // How often the library was called since forget_calls().
  int64_t calls(const std::string& function) const {
    const std::vector<std::string> all = engine_.runtime().calls();
    return std::count(all.begin(), all.end(), function);
  }
  void needs_library() {
    if (!has_simulated_library("cufft")) GTEST_SKIP() << "there is no cuFFT";
    engine_.runtime().forget_calls();
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

// A real view of stride 2 whose start is not aligned to a complex number, and expanded, narrowed and transposed views.
TEST_P(FftTest, ViewsThatTheLibraryCannotRead) {
  const Tensor reals = filled_any({6, 2 * 9 + 1}, real());
  const Tensor apart = view_of(reals, {{6, 9}, {19, 2}, 1, true});
  expect_equal_on_gpu(
      engine_, "apart", {apart},
      [](const Tensors& t) {
        return Tensors{ops::fft_r2c(t[0], {1}, 1.0), ops::fft_r2c(t[0], {1, 0}, 0.5)};
      },
      tolerance(54));
  const Tensor numbers = filled_any({4, 5, 6}, dtype());
  const Tensor repeated = ops::expand(ops::narrow(numbers, 1, 2, 1), {4, 3, 6});
  for (const Sizes& dims : {Sizes{0}, {1}, {2}, {0, 1}, {2, 1}, {0, 1, 2}}) {
    const Compute transform = [dims](const Tensors& t) { return Tensors{ops::fft_c2c(t[0], dims, 2.0, false)}; };
    expect_equal_on_gpu(engine_, "repeated along " + to_string(dims), {repeated}, transform, tolerance(72));
    expect_equal_on_gpu(engine_, "narrowed along " + to_string(dims), {ops::narrow(numbers, 2, 1, 4)}, transform,
                        tolerance(80));
    expect_equal_on_gpu(engine_, "transposed along " + to_string(dims), {transposed(numbers, 0, 1)}, transform,
                        tolerance(120));
  }
}

TEST_P(FftTest, ManyDimensions) {
  const Compute there = [](const Tensors& t) {
    return Tensors{ops::fft_c2c(t[0], {4, 0, 3, 1, 2}, 0.5, true), ops::fft_c2c(t[0], {-1, -3}, 1.0, false)};
  };
  expect_equal_on_gpu(engine_, "five dimensions", {filled_any({3, 2, 4, 1, 5}, dtype())}, there, tolerance(120));
  expect_equal_on_gpu(
      engine_, "five real dimensions", {filled_any({3, 2, 4, 1, 6}, real())},
      [](const Tensors& t) {
        const Tensor half = ops::fft_r2c(t[0], {0, 1, 3, 2, 4}, 1.0);
        return Tensors{half, ops::fft_c2r(half, {0, 1, 3, 2, 4}, 1.0 / 144, 6)};
      },
      tolerance(144));
}

// Some elements of a real signal's spectrum are real. Their imaginary parts are ignored, and the input is unchanged.
TEST_P(FftTest, IgnoresImaginaryPartsOfRealElements) {
  for (const int64_t n : {8, 9}) {
    const Compute back_and_input = [n](const Tensors& t) {
      return Tensors{ops::fft_c2r(t[0], {1}, 1.0, n), ops::fft_c2r(t[0], {0, 1}, 1.0, n), t[0]};
    };
    expect_equal_on_gpu(engine_, std::to_string(n), {filled_any({3, n / 2 + 1}, dtype())}, back_and_input,
                        tolerance(27));
  }
}

TEST_P(FftTest, TheLibraryTransformsSeveralDimensionsAtOnce) {
  needs_library();
  if (IsSkipped()) return;
  const Tensor x = copy_to_device(filled_any({2, 3, 4, 5}, dtype()), engine_.gpu());
  copy_to_cpu(ops::fft_c2c(x, {1, 2, 3}, 1.0, true));
  EXPECT_EQ(calls("cufftXtExec"), 1);
  copy_to_cpu(ops::fft_c2c(x, {0, 1, 2, 3}, 1.0, true));
  EXPECT_EQ(calls("cufftXtExec"), 3);
  copy_to_cpu(ops::fft_c2c(x, {1, 2, 3}, 1.0, false));
  EXPECT_EQ(calls("cufftXtMakePlanMany"), 3) << "both directions have one plan";
}

// Our own kernel transforms a length that the library rejects.
TEST_P(FftTest, LengthsUnsupportedByLibrary) {
  needs_library();
  if (IsSkipped()) return;
  expect_transforms(filled_any({1, 1 << 15}, dtype()), filled_any({1, 1 << 15}, real()), 1);
  EXPECT_EQ(calls("cufftXtExec"), 0);
}

TEST_P(FftTest, PlansInGraphs) {
  const Tensor x = copy_to_device(filled_any({3, 15}, dtype()), engine_.gpu());
  const Tensor want = ops::fft_c2c(x, {1}, 1.0, true);  // makes the plan
  const auto expect_captured = [&](int64_t number, int64_t dim, const Tensor& expected) {
    engine_.context().graphs().begin(number, engine_.gpu());
    const Tensor got = ops::fft_c2c(x, {dim}, 1.0, true);
    engine_.context().graphs().end(number);
    engine_.context().graphs().replay(number);
    expect_same(got, copy_to_cpu(expected), tolerance(15), "replayed");
  };
  expect_captured(1, 1, want);
  // A plan cannot be created during a capture, so our own kernel is used.
  engine_.runtime().forget_calls();
  expect_captured(2, 0, copy_to_device(ops::fft_c2c(copy_to_cpu(x), {0}, 1.0, true), engine_.gpu()));
  EXPECT_EQ(calls("cufftXtMakePlanMany"), 0);
  // Creates more plans than the cache holds. The plan that the graph uses is not evicted.
  for (int64_t lines = 1; has_simulated_library("cufft") && lines <= 1100; ++lines) {
    ops::fft_c2c(copy_to_device(ops::zeros({{lines, 2}}, dtype()), engine_.gpu()), {1}, 1.0, true);
  }
  EXPECT_EQ(calls("cufftDestroy") > 0, has_simulated_library("cufft"));
  engine_.context().graphs().replay(1);
  copy_to_cpu(x);
}

// Repeated launches are replayed as a graph, in which each transform uses the memory of its own call.
TEST_P(FftTest, RepeatedTransforms) {
  const Tensor host = filled_any({4, 15}, dtype());
  const Tensor want = ops::fft_c2c(ops::fft_c2c(host, {1}, 0.5, true), {0}, 1.0, true);
  for (int step = 0; step < 6; ++step) {
    const Tensor x = copy_to_device(host, engine_.gpu());
    Tensor y = ops::fft_c2c(x, {1}, 0.5, true);
    for (int i = 0; i < 8; ++i) y = ops::mul(y, 1.0);
    y = ops::fft_c2c(y, {0}, 1.0, true);
    expect_same(y, want, tolerance(60), "step " + std::to_string(step));
  }
}

INSTANTIATE_TEST_SUITE_P(Both, FftTest, ::testing::Values(DType::kComplex64, DType::kComplex128),
                         [](const auto& param) { return std::string(name(param.param)); });

}  // namespace
}  // namespace tt::cuda
