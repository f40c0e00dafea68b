// The gradients of leaves: `.grad` of handles, and what the engine accumulates into. Nothing here waits for the engine.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "client/session/tensor.h"

namespace tt::client {

// Sets `.grad` of several leaves at once. A null gradient clears `.grad`.
void set_grads(absl::Span<const Tensor> leaves, absl::Span<const Tensor> grads, uint32_t site);
// Like a backward pass that has computed these gradients: adds to `.grad` of several leaves that require grad. With
// `replace`, which requires that no leaf's `.grad` counts, `.grad` becomes the given tensor, which must share no
// memory.
void accumulate_grads(absl::Span<const Tensor> leaves, absl::Span<const Tensor> grads, bool replace, uint32_t site);
// Stores a leaf's accumulated gradient, as the engine has returned it, in the handle: `gradient` is the name of the sum
// that the engine has computed in place, if there was a gradient.
void keep_accumulated(Handle& leaf, Tensor gradient);

}  // namespace tt::client
