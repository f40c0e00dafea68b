#include "autograd/nodes/view_node.h"

#include "autograd/formulas/region.h"
#include "autograd/nodes/history.h"
#include "engine/dispatch/ops.h"
#include "engine/schema/error.h"

namespace tt::autograd {
namespace {

Geometry geometry_of(const Tensor& t) { return {t.sizes(), t.strides(), t->offset, true}; }

Region region_of(const Tensor& base, const Tensor& view) {
  const bool has_parts =
      is_complex(base.dtype()) != is_complex(view.dtype()) && to_real(base.dtype()) == to_real(view.dtype());
  check(ErrorKind::kNotImplemented, base.dtype() == view.dtype() || has_parts,
        "in-place writes to a view of another dtype are supported only if one is complex and the other one that of its "
        "parts, when the base requires grad; got ",
        name(base.dtype()), " and ", name(view.dtype()));
  return {geometry_of(base), geometry_of(view), base.dtype(), view.dtype(), base.device()};
}

}  // namespace

Tensor ViewNode::zeros(uint32_t) const { return ops::zeros(region_.view.sizes, region_.view_dtype, region_.device); }

void WriteNode::run(Gradients& gradients, Gradients& results) {
  if (edges[0].node) results[0] = region_.zero_out(gradients[0]);
  if (edges[1].node) results[1] = region_.gather(gradients[0]);
}

Tensor WriteNode::zeros(uint32_t) const { return ops::zeros(region_.base.sizes, region_.dtype, region_.device); }

Ref<Node> make_view_node(const Tensor& base, const Tensor& view) {
  Ref<ViewNode> node(new ViewNode(region_of(base, view)));
  node->edges.push_back(edge_of(base));
  node->enter_tape();
  return node;
}

Ref<Node> make_write_node(const Tensor& base, const Tensor& view, Edge old, Edge written) {
  Ref<WriteNode> node(new WriteNode(region_of(base, view)));
  node->edges.push_back(std::move(old));
  node->edges.push_back(std::move(written));
  node->enter_tape();
  return node;
}

}  // namespace tt::autograd
