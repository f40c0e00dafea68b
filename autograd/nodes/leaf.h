// LeafNode: node of a leaf tensor. Accumulates into the leaf's `.grad`.
#pragma once

#include <limits>
#include <memory>

#include "autograd/nodes/node.h"
#include "engine/schema/error.h"

namespace tt::autograd {

class LeafNode final : public Node {
 public:
  // Leaves run before all other ready nodes, so that pending gradients are freed early.
  static constexpr uint64_t kSequence = std::numeric_limits<uint64_t>::max();

  explicit LeafNode(TensorImpl* leaf) : Node(1), leaf_(leaf) { sequence_ = kSequence; }
  std::string name() const override { return "AccumulateGrad"; }
  Type type() const override { return Type::kLeaf; }
  void run(Gradients& gradients, Gradients& results) override;
  // Adds `gradient`, which shares no memory, to the gradient of `leaf`. Returns the sum.
  static Tensor add_to(TensorImpl& leaf, Tensor gradient, bool in_place);
  Tensor zeros(uint32_t output) const override;
  // Called if `error` ended a pass that accumulates into the leaf. Reading its gradient then throws `error` until
  // the gradient is set.
  void invalidate_gradient(const std::shared_ptr<const Error>& error);
  // Called when the leaf is destroyed. Later gradients are dropped.
  void forget() { leaf_ = nullptr; }
  // Transfers the node to `leaf`, its new owner. Gradients accumulate into `leaf` from now on.
  void move_to(TensorImpl* leaf) { leaf_ = leaf; }

 private:
  TensorImpl* leaf_;  // owns this node; calls forget() when destroyed
};

}  // namespace tt::autograd
