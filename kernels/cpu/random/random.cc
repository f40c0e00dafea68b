// Random operators over the session's generator. engine/session/generator.h defines the random words of each element.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "engine/device/parallel.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"
#include "kernels/common/iteration/element.h"
#include "kernels/common/random/dropout_scale.h"
#include "kernels/common/random/random_ranges.h"
#include "kernels/cpu/iteration/block.h"
#include "kernels/cpu/iteration/chain.h"
#include "kernels/cpu/iteration/complex_as_real.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"

namespace tt::cpu {

namespace {

using OptionalDType = std::optional<DType>;
using OptionalDevice = std::optional<Device>;

constexpr int64_t kGrain = 16;  // minimum groups per thread

// Calls f(first element, count, words) for elements [0, n), with `words_each` words per element, and advances the
// current context's generator by the words used.
template <typename F>
void draw_words(int64_t n, int64_t words_each, F f) {
  const int64_t per_group = kGroupWords / words_each;
  const int64_t groups = (n + per_group - 1) / per_group;
  Generator& generator = Context::current().generator;
  const uint64_t seed = generator.seed, counter = generator.advance(groups * kGroupBlocks);
  parallel_for(groups, kGrain, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t words[kGroupWords];
    for (int64_t g = begin; g < end; ++g) {
      blocks().random_functions.words(seed, counter + static_cast<uint64_t>(g) * kGroupBlocks, words);
      f(g * per_group, std::min(per_group, n - g * per_group), words);
    }
  });
}

template <typename C>
constexpr int64_t kWordsOf = sizeof(C) / sizeof(uint32_t);

template <typename C>
using Distribution = void (*)(const uint32_t* words, C* out);

// Draws from `distribution`, calls after(values, count), and stores the values. Requires a contiguous out.
template <typename C, typename F>
void draw_as(const Tensor& out, Distribution<C> distribution, F after) {
  const StoreFunction<C> store = blocks().conversions<C>().store[static_cast<int>(out.dtype())];
  const int64_t item = static_cast<int64_t>(item_size(out.dtype()));
  draw_words(out.numel(), kWordsOf<C>, [&](int64_t at, int64_t count, const uint32_t* words) {
    alignas(64) C values[kGroupWords / kWordsOf<C>];
    distribution(words, values);
    after(values, count);
    store(values, Rows{1, 0, count, 1}, out.data_as<char>() + at * item);
  });
}

// Runs write(target), where `target` is `out` if contiguous, else a contiguous tensor that is then copied to `out`.
template <typename F>
void write_contiguous(const Tensor& out, F write) {
  if (out.is_contiguous()) return write(out);
  const Tensor target = tt::empty(out.sizes(), out.dtype(), out.device());
  write(target);
  copy(target, out);
}

// Makes a function of arrays from a function of elements.
template <typename F>
auto each(F f) {
  return [=]<typename C>(C* values, int64_t n) {
    for (int64_t i = 0; i < n; ++i) values[i] = f(values[i]);
  };
}

// Calls f(values, count) for uniform numbers in [0, 1): in double for float64 results, else in float.
template <typename F>
void draw_uniform(const Tensor& out, F f) {
  const RandomFunctions& functions = blocks().random_functions;
  write_contiguous(out, [&](const Tensor& to) {
    if (to.dtype() == DType::kFloat64)
      draw_as<double>(to, functions.uniform_f64, f);
    else
      draw_as<float>(to, functions.uniform_f32, f);
  });
}

// Replaces uniform numbers by exponentially distributed ones, with the vectorised log1p of the pointwise operator.
template <typename C>
void to_exponentials(C* values, int64_t n, double lambd) {
  const PointwiseRow& row = row_of(op_id::kLog1p);
  BlockFunction<C> log1p;
  if constexpr (std::is_same_v<C, float>)
    log1p = row.f32;
  else
    log1p = row.f64;
  for (int64_t i = 0; i < n; ++i) values[i] = -values[i];
  log1p(n, &values, values, ScalarArgs<C>());
  const C rate = static_cast<C>(lambd);
  for (int64_t i = 0; i < n; ++i) values[i] = std::max(-values[i], kLeastExponential<C>) / rate;
}

}  // namespace

void draw_unit(const Tensor& out, double from, double to) {
  draw_uniform(out, each(uniform_range(from, to, out.dtype())));
}

void draw_normal(const Tensor& out, double mean, double std) {
  const RandomFunctions& functions = blocks().random_functions;
  const auto shift = each([=]<typename C>(C z) { return static_cast<C>(mean) + z * static_cast<C>(std); });
  write_contiguous(out, [&](const Tensor& to) {
    if (to.dtype() == DType::kFloat64)
      draw_as<double>(to, functions.normal_f64, shift);
    else
      draw_as<float>(to, functions.normal_f32, shift);
  });
}

namespace {

// Combines two words into 64 bits as the double distributions do: words j and j + 1 of a block, for even j.
uint64_t word_pair(const uint32_t* words, int64_t i) {
  const int64_t at = i / kGroupBlocks * 2 * kGroupBlocks + i % kGroupBlocks;
  return uint64_t{words[at]} << 32 | words[at + kGroupBlocks];
}

}  // namespace

void draw_integers(const Tensor& out, const IntegerRange& range) {
  write_contiguous(out, [&](const Tensor& target) {
    with_element(target.dtype(), [&]<typename T>(std::type_identity<T>) {
      T* to = target.data_as<T>();
      if (range.uses_one_word()) {
        draw_words(target.numel(), 1, [&](int64_t at, int64_t count, const uint32_t* words) {
          for (int64_t i = 0; i < count; ++i) to[at + i] = static_cast<T>(range.from_word(words[i]));
        });
      } else {
        draw_words(target.numel(), 2, [&](int64_t at, int64_t count, const uint32_t* words) {
          for (int64_t i = 0; i < count; ++i) to[at + i] = static_cast<T>(range.from_words(word_pair(words, i)));
        });
      }
    });
  });
}

void exponential_like(const Tensor&, double lambd, Tensor& out) {
  check_exponential(lambd);
  draw_uniform(out, [=]<typename C>(C* values, int64_t n) { to_exponentials(values, n, lambd); });
}

void bernoulli_like(const Tensor&, double p, Tensor& out) {
  check_bernoulli(p);
  draw_uniform(out, each([=]<typename C>(C u) { return static_cast<C>(u < static_cast<C>(p)); }));
}

void dropout(const Tensor& input, double p, Tensor& output, Tensor& kept) {
  bernoulli_like(input, 1 - p, kept);
  run_chain(DropoutScale(input, kept, p).steps(), output);
}

void bernoulli(const Tensor& input, Tensor& out) {
  // An element is 1 if its uniform number is below its probability.
  const Tensor uniform = tt::empty(out.sizes(), DType::kFloat64, out.device());
  const Tensor p = tt::empty(out.sizes(), DType::kFloat64, out.device());
  draw_unit(uniform, 0, 1);
  copy(input, p);
  const double *u = uniform.data_as<double>(), *probability = p.data_as<double>();
  bool fits = true;
  for (int64_t i = 0; i < p.numel(); ++i) fits &= probability[i] >= 0 && probability[i] <= 1;
  check(fits, kNoProbability);
  with_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    T* to = out.data_as<T>();
    for (int64_t i = 0; i < p.numel(); ++i) to[i] = static_cast<T>(static_cast<float>(u[i] < probability[i]));
  });
}

void randperm(int64_t n, OptionalDType, OptionalDevice, Tensor& out) {
  check_randperm(n, out.dtype());
  std::vector<uint64_t> drawn(n);
  draw_words(n, 2, [&](int64_t at, int64_t count, const uint32_t* words) {
    for (int64_t i = 0; i < count; ++i) drawn[at + i] = word_pair(words, i);
  });
  with_element(out.dtype(), [&]<typename T>(std::type_identity<T>) { shuffle(drawn.data(), n, out.data_as<T>()); });
}

namespace {

// Draws for one row: chooses the element whose interval of the running sum of weights contains the scaled uniform
// number.
void draw_with_replacement(const double* weights, int64_t n, const double* uniform, int64_t count, int64_t* out) {
  std::vector<double> sums(n);
  std::partial_sum(weights, weights + n, sums.begin());
  for (int64_t i = 0; i < count; ++i) {
    const auto at = std::upper_bound(sums.begin(), sums.end(), uniform[i] * sums.back()) - sums.begin();
    int64_t chosen = std::min<int64_t>(at, n - 1);
    // Rounding may select an element after the last positive weight.
    while (chosen > 0 && weights[chosen] == 0) --chosen;
    out[i] = chosen;
  }
}

// Draws for one row: chooses the first `count` of independent exponential arrival times, whose rates are the weights.
void draw_without_replacement(const double* weights, int64_t n, const double* uniform, int64_t count, int64_t* out) {
  std::vector<std::pair<double, int64_t>> arrivals(n);
  for (int64_t i = 0; i < n; ++i) arrivals[i] = {-std::log1p(-uniform[i]) / weights[i], i};
  for (int64_t i = 0; i < n; ++i) {
    if (weights[i] == 0) arrivals[i].first = std::numeric_limits<double>::infinity();
  }
  std::partial_sort(arrivals.begin(), arrivals.begin() + count, arrivals.end());
  for (int64_t i = 0; i < count; ++i) out[i] = arrivals[i].second;
}

void check_weights(const double* weights, int64_t n, int64_t num_samples, bool replacement) {
  double sum = 0;
  int64_t positive = 0;
  for (int64_t i = 0; i < n; ++i) {
    check(std::isfinite(weights[i]) && weights[i] >= 0, kBadWeights);
    sum += weights[i];
    positive += weights[i] > 0;
  }
  check(sum > 0, kNoWeight);
  check(replacement || positive >= num_samples, kFewWeights);
}

}  // namespace

void multinomial(const Tensor& input, int64_t num_samples, bool replacement, Tensor& out) {
  const int64_t n = input.size(-1), rows = n == 0 ? 0 : input.numel() / n;
  const Tensor weights = tt::empty(input.sizes(), DType::kFloat64, input.device());
  copy(input, weights);
  const int64_t draws = replacement ? num_samples : n;
  const Tensor uniform = tt::empty({{rows, draws}}, DType::kFloat64, input.device());
  draw_unit(uniform, 0, 1);
  const auto draw = replacement ? &draw_with_replacement : &draw_without_replacement;
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = weights.data_as<double>() + r * n;
    check_weights(row, n, num_samples, replacement);
    draw(row, n, uniform.data_as<double>() + r * draws, num_samples, out.data_as<int64_t>() + r * num_samples);
  }
}

}  // namespace tt::cpu
