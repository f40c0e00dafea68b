// Decoder: a model that predicts the next token of sequences, each with a slot of a cache of keys and values.
//
// Used by the thread of one Scheduler. Functions throw Error.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace tt::server::generation {

struct DecoderLimits {
  int64_t slots = 0;       // sequences that the cache has room for
  int64_t max_length = 0;  // tokens of a sequence, the prompt's included
  int64_t vocabulary = 0;  // tokens are numbers below this one
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual DecoderLimits limits() const = 0;
  // Begins a sequence in a slot, which may have had another one. Returns the logits of the token after `tokens`, of
  // which there are 1 to max_length, valid until the next call.
  virtual absl::Span<const float> prefill(int64_t slot, absl::Span<const int64_t> tokens) = 0;
  struct Next {
    int64_t slot;
    int64_t token;
    int64_t position;  // of the token in its sequence, below max_length
  };
  // Appends a token to each of several sequences. Returns a row of logits per sequence, valid until the next call.
  virtual absl::Span<const float> step(absl::Span<const Next> next) = 0;
};

}  // namespace tt::server::generation
