// Draws by rejection: an element takes as many Philox blocks as it needs from a counter range of its own, so that the
// numbers do not depend on how elements are split among threads.
#include <cmath>

#include "engine/context.h"
#include "engine/parallel.h"
#include "engine/rules/error.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/wide.h"

namespace tt::cpu {
namespace {

constexpr int64_t kGrain = 512;
constexpr uint64_t kBlocksEach = 256;  // beyond, an element goes on into its neighbour's: it takes some two in the mean

// Uniform and normal numbers for one element.
class Source {
 public:
  Source(uint64_t seed, uint64_t counter) : seed_(seed), counter_(counter) {}
  // In (0, 1).
  double uniform() {
    if (left_ == 0) {
      words_ = philox(seed_, counter_++);
      left_ = 4;
    }
    const uint64_t high = words_[static_cast<size_t>(--left_)], low = words_[static_cast<size_t>(--left_)];
    return (static_cast<double>((high << 20) ^ (low >> 12)) + 0.5) * 0x1p-52;
  }
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307179586 * uniform()); }

 private:
  uint64_t seed_, counter_;
  std::array<uint32_t, 4> words_{};
  int left_ = 0;
};

// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
double draw_gamma(Source& source, double concentration) {
  double boost = 1;
  if (concentration < 1) {
    boost = std::pow(source.uniform(), 1 / concentration);
    concentration += 1;
  }
  const double d = concentration - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = source.normal(), y = 1 + c * x;
    if (y <= 0) continue;
    const double v = y * y * y;
    if (std::log(source.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return boost * d * v;
  }
}

// Small rates: arrivals within one unit of time. Large ones: Hoermann, "The transformed rejection method" (1993).
double draw_poisson(Source& source, double rate) {
  if (rate < 10) {
    const double limit = std::exp(-rate);
    double count = -1;
    for (double product = 1; product > limit; product *= source.uniform()) ++count;
    return std::max(count, 0.0);
  }
  const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), most = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = source.uniform() - 0.5, v = source.uniform(), distance = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / distance + b) * u + rate + 0.43);
    if (distance >= 0.07 && v <= most) return k;
    if (k < 0 || (distance < 0.013 && v > distance)) continue;
    if (std::log(v * inverse_alpha / (a / (distance * distance) + b)) <= k * std::log(rate) - rate - std::lgamma(k + 1)) {
      return k;
    }
  }
}

// The gaps between successes are geometric (Devroye 1986, X.4.3): as many steps as successes.
double draw_trials(Source& source, double count, double prob) {
  if (prob > 0.5) return count - draw_trials(source, count, 1 - prob);
  if (prob == 0 || count <= 0) return 0;
  const double log_failure = std::log1p(-prob);
  double successes = -1;
  for (double trials = 0; trials <= count; ++successes) {
    trials += std::floor(std::log(source.uniform()) / log_failure) + 1;
  }
  return successes;
}

// out[i] = draw(source of element i, i).
template <typename F>
void draw_each(Tensor& out, F draw) {
  WideResult result(out);
  Generator& generator = Context::current().generator;
  const auto n = static_cast<uint64_t>(out.numel());
  const uint64_t seed = generator.seed, counter = generator.advance(n * kBlocksEach);
  with_real(result.tensor().dtype(), [&]<typename T>(std::type_identity<T>) {
    T* to = result.tensor().template data_as<T>();
    parallel_for(out.numel(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Source source(seed, counter + static_cast<uint64_t>(i) * kBlocksEach);
        to[i] = static_cast<T>(draw(source, i));
      }
    });
  });
  result.land();
}

// Its values as double, checked one by one.
template <typename F>
Tensor checked(const Tensor& t, F fits, std::string_view what) {
  const Tensor values = contiguous_as(t, DType::kFloat64);
  for (int64_t i = 0; i < values.numel(); ++i) {
    check(fits(values.data_as<double>()[i]), what, ", got ", values.data_as<double>()[i]);
  }
  return values;
}

}  // namespace

void standard_gamma(const Tensor& concentration, Tensor& out) {
  const Tensor shapes = checked(concentration, [](double a) { return a > 0 && std::isfinite(a); },
                                "invalid gamma concentration, expected it to be positive");
  const double* a = shapes.data_as<double>();
  draw_each(out, [=](Source& source, int64_t i) { return draw_gamma(source, a[i]); });
}

void poisson(const Tensor& input, Tensor& out) {
  const Tensor rates = checked(input, [](double r) { return r >= 0 && std::isfinite(r); },
                               "invalid Poisson rate, expected rate to be non-negative");
  const double* rate = rates.data_as<double>();
  draw_each(out, [=](Source& source, int64_t i) { return draw_poisson(source, rate[i]); });
}

void draw_binomial(const Tensor& count, const Tensor& prob, Tensor& out) {
  constexpr double kMost = 1e9;  // a draw takes a step a success
  const Tensor counts = checked(count, [](double n) { return n >= 0 && n <= kMost; },
                                "binomial expects counts that are not negative, and at most 1e9");
  const Tensor probs = checked(prob, [](double p) { return p >= 0 && p <= 1; }, "binomial expects prob to be in [0, 1]");
  const double *n = counts.data_as<double>(), *p = probs.data_as<double>();
  draw_each(out, [=](Source& source, int64_t i) { return draw_trials(source, n[i], p[i]); });
}

}  // namespace tt::cpu
