// Nodes for memory that several tensors share: reading a base through a view, and writing into it.
#pragma once

#include "autograd/node.h"
#include "engine/schema/recycled.h"
#include "engine/tensor/tensor.h"

namespace tt::autograd {

// A view as a function of its base, whatever operators it was made by. Requires that `base`
// requires grad.
Ref<Node> make_view_node(const Tensor& base, const Tensor& view);

// The base after a write into `view`: its old self outside the view (`old`, may be null), and
// inside what was written (`written`, may be null). `view` may be the base itself.
Ref<Node> make_write_node(const Tensor& base, const Tensor& view, Edge old, Edge written);

}  // namespace tt::autograd
