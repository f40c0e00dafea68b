#include "server/serving/generation/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/schema/error.h"
#include "engine/session/generator.h"

namespace tt::server::generation {
namespace {

// From 0 up to, but excluding, 1, with 53 random bits.
double uniform(uint64_t seed, uint64_t index) {
  const auto words = philox(seed, index);
  const uint64_t bits = (uint64_t{words[0]} << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace

void check_sampling(const SamplingParameters& parameters) {
  check(ErrorKind::kValue, parameters.temperature >= 0 && parameters.temperature <= 1e4,
        "[generation] expected a temperature from 0 to 10000, got ", parameters.temperature);
  check(ErrorKind::kValue, parameters.top_k >= 0, "[generation] expected top_k >= 0, got ", parameters.top_k);
  check(ErrorKind::kValue, parameters.top_p > 0 && parameters.top_p <= 1,
        "[generation] expected top_p > 0 and <= 1, got ", parameters.top_p);
}

int64_t sample(absl::Span<const float> logits, const SamplingParameters& parameters, uint64_t index,
               std::vector<int32_t>* scratch) {
  constexpr float kExcluded = -std::numeric_limits<float>::infinity();
  check(ErrorKind::kValue, !logits.empty() && logits.size() <= size_t{std::numeric_limits<int32_t>::max()},
        "[generation] expected logits, got ", logits.size());
  size_t best = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    check(ErrorKind::kValue, std::isfinite(logits[i]) || logits[i] == kExcluded, "[generation] logit ", i, " is ",
          logits[i]);
    if (logits[i] > logits[best]) best = i;
  }
  check(ErrorKind::kValue, logits[best] != kExcluded, "[generation] all tokens are excluded");
  if (parameters.temperature == 0) return static_cast<int64_t>(best);
  const auto more_probable = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  std::vector<int32_t>& tokens = *scratch;
  tokens.resize(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const size_t k =
      parameters.top_k == 0 ? tokens.size() : std::min(tokens.size(), static_cast<size_t>(parameters.top_k));
  const bool is_ordered = k < tokens.size() || parameters.top_p < 1;
  if (is_ordered) {
    std::partial_sort(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(k), tokens.end(), more_probable);
    tokens.resize(k);
  }
  const double largest = logits[best];
  const auto weight = [&](int32_t token) {
    return std::exp((static_cast<double>(logits[static_cast<size_t>(token)]) - largest) / parameters.temperature);
  };
  double total = 0;
  for (int32_t token : tokens) total += weight(token);
  if (parameters.top_p < 1) {
    double kept = 0;
    size_t count = 0;
    while (count < tokens.size() && kept < parameters.top_p * total) kept += weight(tokens[count++]);
    tokens.resize(std::max<size_t>(count, 1));
    total = kept;
  }
  double left = uniform(parameters.seed, index) * total;
  int32_t last = static_cast<int32_t>(best);
  for (int32_t token : tokens) {
    const double w = weight(token);
    if (w == 0) continue;
    last = token;
    if (left < w) return token;
    left -= w;
  }
  return last;  // rounding
}

}  // namespace tt::server::generation
