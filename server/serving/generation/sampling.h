// Sampling: draws a token from logits.
//
// A draw depends only on the logits, the parameters and the number of the token in its request: a request's tokens do
// not depend on the other requests of a batch. Functions without state, used on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace tt::server::generation {

struct SamplingParameters {
  double temperature = 1.0;  // 0: the most probable token
  int64_t top_k = 0;         // only the k most probable tokens; 0: all
  double top_p = 1.0;        // only the most probable tokens whose probabilities together reach p
  uint64_t seed = 0;         // of the request's Philox sequence
};

// Throws Error (ValueError) unless 0 <= temperature <= 1e4, 0 <= top_k and 0 < top_p <= 1.
void check_sampling(const SamplingParameters& parameters);

// Returns the number of the token that is drawn as the request's `index`-th one. Of equally probable tokens, those with
// smaller numbers come first. `scratch` avoids allocations. Throws Error (ValueError) if there are no logits, or one is
// not a number or infinite, except minus infinity, which excludes a token; not all may be excluded.
int64_t sample(absl::Span<const float> logits, const SamplingParameters& parameters, uint64_t index,
               std::vector<int32_t>* scratch);

}  // namespace tt::server::generation
