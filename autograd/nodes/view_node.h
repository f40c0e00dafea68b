// Nodes for tensors that share memory: reading a base through a view, and writing to a base through a view.
#pragma once

#include <string>
#include <utility>

#include "autograd/formulas/region.h"
#include "autograd/nodes/node.h"
#include "engine/schema/thread_cached.h"
#include "engine/tensor/tensor.h"

namespace tt::autograd {

// Its edge leads to the base.
class ViewNode final : public Node, public ThreadCached<ViewNode> {
 public:
  explicit ViewNode(Region region) : Node(1), region_(std::move(region)) {}
  std::string name() const override { return "AsStridedBackward"; }
  Type type() const override { return Type::kView; }
  void run(Gradients& gradients, Gradients& results) override { results[0] = region_.scatter(gradients[0]); }
  Tensor zeros(uint32_t output) const override;
  const Region& region() const { return region_; }

 private:
  Region region_;
};

// Its edges lead to the base before the write, and to what was written.
class WriteNode final : public Node, public ThreadCached<WriteNode> {
 public:
  explicit WriteNode(Region region) : Node(1), region_(std::move(region)) {}
  std::string name() const override { return "CopySlices"; }
  Type type() const override { return Type::kWrite; }
  void run(Gradients& gradients, Gradients& results) override;
  Tensor zeros(uint32_t output) const override;
  const Region& region() const { return region_; }

 private:
  Region region_;
};

// Returns the node of a view as a function of its base, whichever operators created the view. Requires that `base`
// requires grad.
Ref<Node> make_view_node(const Tensor& base, const Tensor& view);

// Returns the node of the base after a write to `view`. Elements outside the view come from `old` (the base before the
// write; may be null), elements inside from `written` (may be null). `view` may be the base itself.
Ref<Node> make_write_node(const Tensor& base, const Tensor& view, Edge old, Edge written);

}  // namespace tt::autograd
