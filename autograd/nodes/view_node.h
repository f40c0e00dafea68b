// Nodes for tensors that share memory: reading a base through a view, and writing to a base through a view.
#pragma once

#include "autograd/nodes/node.h"
#include "engine/schema/thread_cached.h"
#include "engine/tensor/tensor.h"

namespace tt::autograd {

// Returns the node of a view as a function of its base, whichever operators created the view. Requires that `base`
// requires grad.
Ref<Node> make_view_node(const Tensor& base, const Tensor& view);

// Returns the node of the base after a write to `view`. Elements outside the view come from `old` (the base before the
// write; may be null), elements inside from `written` (may be null). `view` may be the base itself.
Ref<Node> make_write_node(const Tensor& base, const Tensor& view, Edge old, Edge written);

}  // namespace tt::autograd
