// What the gradients that a node computes depend on, if its backward pass is recorded.
#pragma once

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "client/session/graph.h"

namespace tt::client {

using GraphEdges = absl::InlinedVector<GraphEdge, 4>;

// Appends the edges of the values that the node's gradient formulas read and that require grad: of arguments, and of
// the node's own results. `wants` returns whether the pass computes the gradient for an edge. A node whose formulas are
// not known, such as that of a composite operator, reads all of its arguments, except for those that it only adds.
// Appends nothing for leaves and client-side functions, whose gradients have a history of their own.
void append_reads(const Ref<GraphNode>& node, absl::FunctionRef<bool(const GraphEdge&)> wants, GraphEdges* reads);

}  // namespace tt::client
