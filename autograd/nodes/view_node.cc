#include "autograd/nodes/view_node.h"

#include "autograd/formulas/region.h"
#include "autograd/nodes/history.h"
#include "engine/dispatch/ops.h"
#include "engine/schema/error.h"

namespace tt::autograd {
namespace {

Geometry geometry_of(const Tensor& t) { return {t.sizes(), t.strides(), t->offset, true}; }

Region region_of(const Tensor& base, const Tensor& view) {
  check(ErrorKind::kNotImplemented, base.dtype() == view.dtype(),
        "in-place writes to a view of another dtype (view_as_real, real, imag, view_as_complex) are not "
        "supported when its base requires grad");
  return {geometry_of(base), geometry_of(view), base.dtype(), base.device()};
}

class ViewNode final : public Node, public ThreadCached<ViewNode> {
 public:
  ViewNode(Region region, Edge base) : Node(1), region_(std::move(region)) {
    edges.push_back(std::move(base));
    enter_tape();
  }
  std::string name() const override { return "AsStridedBackward"; }
  void run(Gradients& gradients, Gradients& results) override { results[0] = region_.scatter(gradients[0]); }
  Tensor zeros(uint32_t) const override { return ops::zeros(region_.view.sizes, region_.dtype, region_.device); }

 private:
  Region region_;
};

class WriteNode final : public Node, public ThreadCached<WriteNode> {
 public:
  WriteNode(Region region, Edge old, Edge written) : Node(1), region_(std::move(region)) {
    edges.push_back(std::move(old));
    edges.push_back(std::move(written));
    enter_tape();
  }
  std::string name() const override { return "CopySlices"; }
  void run(Gradients& gradients, Gradients& results) override {
    if (edges[0].node) results[0] = region_.zero_out(gradients[0]);
    if (edges[1].node) results[1] = region_.gather(gradients[0]);
  }
  Tensor zeros(uint32_t) const override { return ops::zeros(region_.base.sizes, region_.dtype, region_.device); }

 private:
  Region region_;
};

}  // namespace

Ref<Node> make_view_node(const Tensor& base, const Tensor& view) {
  return Ref<Node>(new ViewNode(region_of(base, view), edge_of(base)));
}

Ref<Node> make_write_node(const Tensor& base, const Tensor& view, Edge old, Edge written) {
  return Ref<Node>(new WriteNode(region_of(base, view), std::move(old), std::move(written)));
}

}  // namespace tt::autograd
