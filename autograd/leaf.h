// LeafNode: the end of the tape: accumulates into a leaf's `.grad`.
#pragma once

#include <limits>
#include <memory>

#include "autograd/node.h"
#include "engine/schema/error.h"

namespace tt::autograd {

class LeafNode final : public Node {
 public:
  // Runs before whatever else is ready, so that gradients do not pile up.
  static constexpr uint64_t kSequence = std::numeric_limits<uint64_t>::max();

  explicit LeafNode(TensorImpl* leaf) : Node(1), leaf_(leaf) { sequence_ = kSequence; }
  std::string name() const override { return "AccumulateGrad"; }
  bool is_leaf() const override { return true; }
  void run(Gradients& gradients, Gradients& results) override;
  Tensor zeros(uint32_t output) const override;
  // A pass that was to accumulate into the leaf was cancelled with `error`: its gradient is an error until it is set.
  void lose_gradient(const std::shared_ptr<const Error>& error);
  // The leaf is gone: nobody can ask for its gradient any more.
  void forget() { leaf_ = nullptr; }
  // Gradients accumulate into `leaf` from now on, which owns this.
  void move_to(TensorImpl* leaf) { leaf_ = leaf; }

 private:
  TensorImpl* leaf_;  // owns this, tells it when it goes
};

}  // namespace tt::autograd
