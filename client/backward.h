// The client's side of autograd beside backward() and grad() (client/session.h): functions and
// hooks whose code runs here, leaves, and what is kept of gradients. Nothing here waits for the
// engine. Errors of use throw Error at once.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "client/graph.h"
#include "client/tensor.h"

namespace tt::client {

// `outputs` (floating, made without recording) were made of `inputs` by code of the caller's;
// `backward` gets one gradient for each output, zeros where none arrived, and gives one for each
// input. It should not own the outputs: they own it.
void custom_function(absl::Span<const Tensor> inputs, absl::Span<const Tensor> outputs, BackwardFunction backward,
                     uint32_t site);

// `hook` sees each gradient of `tensor` and may replace it. Returns the hook's number.
int64_t add_hook(const Tensor& tensor, BackwardFunction hook, uint32_t site);
void remove_hook(const Tensor& tensor, int64_t number, uint32_t site);

void set_requires_grad(const Tensor& leaf, bool value, uint32_t site);
// `target`, without history and of the same sizes, dtype and device, becomes the leaf that `source` was: with its
// gradient, its hooks and the graphs that were recorded with it.
void move_leaf(const Tensor& source, const Tensor& target, uint32_t site);
// Sets `.grad`, or clears it (null), of several leaves at once.
void set_grads(absl::Span<const Tensor> leaves, absl::Span<const Tensor> grads, uint32_t site);
// Has backward() keep the gradient of a tensor that is no leaf.
void retain_grad(const Tensor& tensor);

}  // namespace tt::client
