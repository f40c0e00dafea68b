// LongLine with lengths that are short enough for the sums by which transforms are defined.
#include "kernels/cpu/fft/long_line.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "kernels/common/fft/fft_roots.h"

namespace tt::cpu {
namespace {

using Line = std::vector<std::complex<double>>;

Line random_line(int64_t n) {
  std::mt19937 generator(static_cast<uint32_t>(n));
  std::normal_distribution<double> normal;
  Line line(static_cast<size_t>(n));
  for (auto& z : line) z = {normal(generator), normal(generator)};
  return line;
}

// Computes elements of a line's spectrum.
class Definition {
 public:
  explicit Definition(const Line& line) : line_(line) {
    for (size_t k = 0; k < line.size(); ++k) {
      const Root w = root_of_unity(static_cast<int64_t>(k), static_cast<int64_t>(line.size()), true);
      roots_.emplace_back(w.re, w.im);
    }
  }
  std::complex<double> element(int64_t k, bool forward) const {
    std::complex<double> sum;
    for (size_t j = 0; j < line_.size(); ++j) {
      const std::complex<double> root = roots_[j * static_cast<size_t>(k) % line_.size()];
      sum += line_[j] * (forward ? root : std::conj(root));
    }
    return sum;
  }

 private:
  const Line& line_;
  Line roots_;
};

template <typename R>
class LongLineTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(LongLineTest, Types);

// Powers of two, rows or columns that no vector length divides, radices without a loop of their own, and primes.
constexpr int64_t kLengths[] = {1024, 32 * 33, 35 * 39, 2048, 29 * 128, 1009, 2 * 1031, 37 * 64};

TYPED_TEST(LongLineTest, EqualsTheDefinition) {
  using R = TypeParam;
  const double tolerance = std::is_same_v<R, float> ? 2e-5 : 2e-14;
  for (int64_t n : kLengths) {
    const LongLine<R> plan(n);
    const Line line = random_line(n);
    const Definition definition(line);
    std::vector<R> pairs, workspace(static_cast<size_t>(plan.workspace_size()));
    for (auto z : line) pairs.insert(pairs.end(), {static_cast<R>(z.real()), static_cast<R>(z.imag())});
    for (bool forward : {true, false}) {
      std::vector<R> result = pairs;
      plan.run(result.data(), result.data(), !forward, R(0.5), workspace.data());
      for (int64_t k = 0; k < n; k += 1 + n / 50) {
        const std::complex<double> expected = 0.5 * definition.element(k, forward);
        const std::complex<double> got(result[static_cast<size_t>(2 * k)], result[static_cast<size_t>(2 * k + 1)]);
        ASSERT_LT(std::abs(got - expected), tolerance * std::sqrt(static_cast<double>(n))) << n << " " << k;
      }
    }
  }
}

TYPED_TEST(LongLineTest, ConvertsSpectraOfReals) {
  using R = TypeParam;
  const double tolerance = std::is_same_v<R, float> ? 2e-5 : 2e-14;
  for (int64_t n : kLengths) {
    const LongLine<R> plan(n, true);
    const Line line = random_line(n);
    Line reals;  // 2 n values
    std::vector<R> spectrum, workspace(static_cast<size_t>(plan.workspace_size()));
    for (auto z : line) {
      spectrum.insert(spectrum.end(), {static_cast<R>(z.real()), static_cast<R>(z.imag())});
      reals.insert(reals.end(), {z.real(), z.imag()});
    }
    const Definition definition(reals);
    const std::vector<R> values = spectrum;
    spectrum.resize(static_cast<size_t>(2 * n + 2));
    plan.run(spectrum.data(), spectrum.data(), false, R(1), workspace.data());
    plan.spectrum_of_reals(spectrum.data(), R(1));
    for (int64_t k = 0; k <= n; k += k + 1 < n ? 1 + n / 50 : 1) {
      const std::complex<double> expected = definition.element(k, true);
      const std::complex<double> got(spectrum[static_cast<size_t>(2 * k)], spectrum[static_cast<size_t>(2 * k + 1)]);
      ASSERT_LT(std::abs(got - expected), tolerance * std::sqrt(2.0 * static_cast<double>(n))) << n << " " << k;
    }
    std::vector<R> back(static_cast<size_t>(2 * n));
    plan.reals_from_spectrum(spectrum.data(), back.data());
    plan.run(back.data(), back.data(), true, R(1) / static_cast<R>(2 * n), workspace.data());
    for (size_t i = 0; i < back.size(); ++i) ASSERT_NEAR(back[i], values[i], tolerance) << n << " " << i;
  }
}

}  // namespace
}  // namespace tt::cpu
