// The shadow of the engine's tape: what a client must know of it without asking.
#pragma once

#include "absl/types/span.h"
#include "client/tensor.h"
#include "engine/rules/op.h"

namespace tt::client {

// One recorded operation; its results are no leaves.
class GraphNode : public RefCounted {
 public:
  explicit GraphNode(const Op& op) : op_(&op) {}
  const Op& op() const { return *op_; }

 private:
  const Op* op_;
};

// Gives the results that require grad their node. Called by Session::call where gradients are on.
inline void record(const Op& op, Args, absl::Span<const Tensor> results) {
  Ref<GraphNode> node;
  for (const Tensor& result : results) {
    if (!result->requires_grad) continue;
    if (!node) node = make_ref<GraphNode>(op);
    result->node = node;
  }
}

}  // namespace tt::client
