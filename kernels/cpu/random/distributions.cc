// Sampling by rejection. Each element has its own source of random numbers.
#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"
#include "kernels/common/random/rejection.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {
namespace {

using rejection::Source;

constexpr int64_t kGrain = 512;

// out[i] = draw(source of element i, i).
template <typename F>
void draw_each(Tensor& out, F draw) {
  AccumulateBuffer result(out);
  Generator& generator = Context::current().generator;
  const auto n = static_cast<uint64_t>(out.numel());
  const uint64_t seed = generator.seed, counter = generator.advance(n * rejection::kBlocksEach);
  with_real(result.tensor().dtype(), [&]<typename T>(std::type_identity<T>) {
    T* to = result.tensor().template data_as<T>();
    parallel_for(out.numel(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Source source(seed, counter, i);
        to[i] = static_cast<T>(draw(source, i));
      }
    });
  });
  result.copy_to_output();
}

// Returns the values as double, after checking each one against the range.
Tensor checked(const Tensor& t, const rejection::Range& range) {
  const Tensor values = contiguous_as(t, DType::kFloat64);
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double x = values.data_as<double>()[i];
    check(range.contains(x), range.message, ", got ", x);
  }
  return values;
}

}  // namespace

void standard_gamma(const Tensor& concentration, Tensor& out) {
  const Tensor shapes = checked(concentration, rejection::kConcentrations);
  const double* a = shapes.data_as<double>();
  draw_each(out, [=](Source& source, int64_t i) { return rejection::draw_gamma(source, a[i]); });
}

void poisson(const Tensor& input, Tensor& out) {
  const Tensor rates = checked(input, rejection::kRates);
  const double* rate = rates.data_as<double>();
  draw_each(out, [=](Source& source, int64_t i) { return rejection::draw_poisson(source, rate[i]); });
}

void draw_binomial(const Tensor& count, const Tensor& prob, Tensor& out) {
  const Tensor counts = checked(count, rejection::kCounts), probs = checked(prob, rejection::kProbabilities);
  const double *n = counts.data_as<double>(), *p = probs.data_as<double>();
  draw_each(out, [=](Source& source, int64_t i) { return rejection::draw_trials(source, n[i], p[i]); });
}

}  // namespace tt::cpu
