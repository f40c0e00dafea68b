// Client side of autograd: backward() and grad(), client-side functions and hooks, leaves, and retained gradients.
// Nothing here waits for the engine. Incorrect use throws Error at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "client/session/graph.h"
#include "client/session/leaf_grads.h"
#include "client/session/tensor.h"

namespace tt::client {

// Reverse-mode differentiation, issued without waiting; see docs/autograd.md. A null gradient means ones, and requires
// a root with one element.
//
// Accumulates into the `.grad` of the leaves that the roots reach, or only of the leaves in `inputs`.
void backward(absl::Span<const Tensor> roots, absl::Span<const Tensor> gradients, bool retain_graph, bool create_graph,
              uint32_t site, absl::Span<const Tensor> inputs = {});
// Returns the gradients with respect to `inputs`; an entry is null if there is no gradient (requires allow_unused).
std::vector<Tensor> grad(absl::Span<const Tensor> roots, absl::Span<const Tensor> gradients,
                         absl::Span<const Tensor> inputs, bool retain_graph, bool create_graph, bool allow_unused,
                         uint32_t site);

// Records that the caller's code computed `outputs` (floating point, made without recording) from `inputs`. `backward`
// receives one gradient per output and returns one per input. For outputs that received no gradient it receives zeros
// or, with `wants_undefined`, null; only then a backward pass waits for the engine at this function. `backward` should
// not own the outputs, because the outputs own `backward`. `name` is the name of the graph's node. Returns the number
// of the function's stop (BackwardPass::history_in_pass()).
int64_t custom_function(absl::Span<const Tensor> inputs, absl::Span<const Tensor> outputs, BackwardFunction backward,
                        uint32_t site, std::string name = "FunctionBackward", bool wants_undefined = false);

// `hook` receives each gradient of `tensor` and may replace it. Returns the hook's id.
int64_t add_hook(const Tensor& tensor, BackwardFunction hook, uint32_t site);
void remove_hook(const Tensor& tensor, int64_t number, uint32_t site);

void set_requires_grad(const Tensor& leaf, bool value, uint32_t site);
// Makes `target` a leaf in place of `source`. `target` must have no history, and the same sizes, dtype and device.
// `target` takes over the gradient, the hooks and the graphs that were recorded with `source`.
void move_leaf(const Tensor& source, const Tensor& target, uint32_t site);
// Returns the leaves into which a backward pass from the roots would accumulate gradients. Throws Error if a root does
// not require grad.
std::vector<Tensor> reached_leaves(absl::Span<const Tensor> roots);
// Makes backward() keep the gradient of a tensor that is not a leaf.
void retain_grad(const Tensor& tensor);

}  // namespace tt::client
