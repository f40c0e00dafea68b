// Sampling by rejection. Each element draws as many Philox blocks as it needs from its own counter range, so that the
// numbers depend neither on the partitioning among threads nor on the backend.
#pragma once

#include <limits>

#include "engine/session/generator.h"
#include "kernels/common/math/scalar_math.h"

namespace tt::rejection {

// Number of Philox blocks in the counter range of an element. An element needs about two on average; if it needs more
// than this number, it reads its neighbour's blocks.
constexpr uint64_t kBlocksEach = 256;

// The valid parameters of a distribution.
struct Range {
  const char* message;  // the error message for values out of range
  double low, high;

  constexpr bool contains(double x) const { return x >= low && x <= high; }
};

inline constexpr double kMaxFinite = std::numeric_limits<double>::max();
inline constexpr Range kConcentrations{"invalid gamma concentration, expected it to be non-negative", 0, kMaxFinite};
inline constexpr Range kRates{"invalid Poisson rate, expected rate to be non-negative", 0, kMaxFinite};
// binomial's counts are bounded because a draw takes up to one step per success.
inline constexpr Range kCounts{"binomial expects counts in [0, 1e9]", 0, 1e9};
inline constexpr Range kProbabilities{"binomial expects prob to be in [0, 1]", 0, 1};

// Generates uniform and normal numbers for one element.
class Source {
 public:
  TT_HOST_DEVICE Source(uint64_t seed, uint64_t counter, int64_t element)
      : seed_(seed), counter_(counter + static_cast<uint64_t>(element) * kBlocksEach) {}
  // Returns a uniform number in (0, 1).
  TT_HOST_DEVICE double uniform() {
    if (left_ == 0) {
      words_ = philox(seed_, counter_++);
      left_ = 4;
    }
    const uint64_t high = words_[static_cast<size_t>(left_ - 1)], low = words_[static_cast<size_t>(left_ - 2)];
    left_ -= 2;
    return (static_cast<double>((high << 20) ^ (low >> 12)) + 0.5) * 0x1p-52;
  }
  TT_HOST_DEVICE double normal() {
    const double radius = math::sqrt(-2 * math::log(uniform()));
    return radius * math::cos(2 * math::kPi<double> * uniform());
  }

 private:
  uint64_t seed_, counter_;
  std::array<uint32_t, 4> words_{};
  int left_ = 0;
};

// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
TT_HOST_DEVICE double draw_gamma(Source& source, double concentration) {
  double boost = 1;
  if (concentration < 1) {
    boost = math::pow(source.uniform(), 1 / concentration);
    concentration += 1;
  }
  const double d = concentration - 1.0 / 3, c = 1 / math::sqrt(9 * d);
  while (true) {
    const double x = source.normal(), y = 1 + c * x;
    if (y <= 0) continue;
    const double v = y * y * y;
    if (math::log(source.uniform()) < 0.5 * x * x + d - d * v + d * math::log(v)) return boost * d * v;
  }
}

// The number of arrivals of a Poisson process within one unit of time.
TT_HOST_DEVICE double count_arrivals(Source& source, double rate) {
  const double limit = math::exp(-rate);
  double count = -1;
  for (double product = 1; product > limit; product *= source.uniform()) ++count;
  return count > 0 ? count : 0;
}

// Counts arrivals if the rate is small, else uses Hoermann, "The transformed rejection method" (1993).
TT_HOST_DEVICE double draw_poisson(Source& source, double rate) {
  if (rate < 10) return count_arrivals(source, rate);
  const double b = 0.931 + 2.53 * math::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), most = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = source.uniform() - 0.5, v = source.uniform(), distance = 0.5 - math::abs(u);
    const double k = math::floor((2 * a / distance + b) * u + rate + 0.43);
    if (distance >= 0.07 && v <= most) return k;
    if (k < 0 || (distance < 0.013 && v > distance)) continue;
    if (math::log(v * inverse_alpha / (a / (distance * distance) + b)) <=
        k * math::log(rate) - rate - math::lgamma(k + 1)) {
      return k;
    }
  }
}

// A binomial number: adds up the gaps between successes, which are geometric (Devroye 1986, X.4.3). Takes one step per
// success or, if prob > 0.5, per failure.
TT_HOST_DEVICE double draw_trials(Source& source, double count, double prob) {
  const bool mirrored = prob > 0.5;
  const double p = mirrored ? 1 - prob : prob;
  double successes = 0;
  if (p > 0 && count > 0) {
    const double log_failure = math::log1p(-p);
    successes = -1;
    for (double trials = 0; trials <= count; ++successes) {
      trials += math::floor(math::log(source.uniform()) / log_failure) + 1;
    }
  }
  return mirrored ? count - successes : successes;
}

}  // namespace tt::rejection
