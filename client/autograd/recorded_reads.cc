#include "client/autograd/recorded_reads.h"

#include <algorithm>
#include <bit>

#include "engine/schema/op_ids.h"

namespace tt::client {
namespace {

// Composite operators that are linear in their differentiable arguments: their gradients read none.
constexpr uint16_t kLinear[] = {
    op_id::kTrace, op_id::kDiff,    op_id::kHstack,       op_id::kVstack,         op_id::kTile,
    op_id::kDiag,  op_id::kDropout, op_id::kPixelShuffle, op_id::kPixelUnshuffle, op_id::kChannelShuffle,
    op_id::kRot90, op_id::kIm2col,  op_id::kCol2im,
};
// Composite operators that multiply: the gradient of a factor reads the other ones.
constexpr uint16_t kProducts[] = {
    op_id::kMm,    op_id::kBmm,   op_id::kMv,     op_id::kDot,     op_id::kOuter, op_id::kInner,    op_id::kKron,
    op_id::kAddmm, op_id::kAddmv, op_id::kAddbmm, op_id::kBaddbmm, op_id::kAddr,  op_id::kBilinear,
};
// Operators whose formulas read no input, or not this one, but whose gradients depend on it in PyTorch, with
// derivatives of 0: a leaf's gradient is then 0 instead of None, which makes a difference to weight decay.
constexpr uint16_t kReadInPyTorch[] = {op_id::kAvgPool2d, op_id::kAdaptiveAvgPool2d, op_id::kGroupNorm};

template <size_t N>
bool contains(const uint16_t (&ids)[N], const Op& op) {
  return std::find(std::begin(ids), std::end(ids), op.id) != std::end(ids);
}

// The parameters of a composite operator that it adds to a result which does not depend on them otherwise.
bool is_added(const Op& op, const Param& param) {
  return param.name == "bias" || (param.name == "input" && contains(kProducts, op) && op.name.find("add") == 0);
}

// The number of the edge of each parameter, or -1: an argument without one. Returns false if the node does not record
// which arguments its edges belong to, such as those of a list.
bool find_edges(const GraphNode& node, absl::InlinedVector<int, 16>* edges) {
  const Op& op = *node.op();
  int next = 0;
  for (size_t i = 0; i < op.params.size(); ++i) {
    const bool has_edge = op.params[i].differentiable && (node.tensors >> i & 1) != 0;
    if (has_edge && op.params[i].type != ParamType::kTensor) return false;
    edges->push_back(has_edge ? next++ : -1);
  }
  return next == static_cast<int>(node.edges.size());
}

}  // namespace

void append_reads(const Ref<GraphNode>& node, absl::FunctionRef<bool(const GraphEdge&)> wants, GraphEdges* reads) {
  const auto append = [&](const GraphEdge& edge) {
    if (edge.node) reads->push_back(edge);
  };
  if (node->is_recorded_pass) std::for_each(node->edges.begin(), node->edges.end(), append);
  if (node->op() == nullptr) return;
  const Op& op = *node->op();
  absl::InlinedVector<int, 16> edges;
  const bool is_known = find_edges(*node, &edges);
  if (contains(kReadInPyTorch, op)) {
    std::for_each(node->edges.begin(), node->edges.end(), append);
    return;
  }
  if (op.is_composite || op.id > op_id::kMax) {
    if (contains(kLinear, op)) return;
    const auto is_wanted_factor = [&](size_t i) {
      return edges[i] >= 0 && !is_added(op, op.params[i]) && wants(node->edges[static_cast<size_t>(edges[i])]);
    };
    for (size_t i = 0; is_known && i < edges.size(); ++i) {
      if (edges[i] < 0 || is_added(op, op.params[i])) continue;
      bool is_read = !contains(kProducts, op);
      for (size_t other = 0; !is_read && other < edges.size(); ++other) {
        is_read = other != i && is_wanted_factor(other);
      }
      if (is_read) append(node->edges[static_cast<size_t>(edges[i])]);
    }
    if (!is_known) std::for_each(node->edges.begin(), node->edges.end(), append);
    return;
  }
  uint32_t needed = node->needed;
  for (size_t i = 0; is_known && i < edges.size(); ++i) {
    if (edges[i] >= 0 && !wants(node->edges[static_cast<size_t>(edges[i])])) needed &= ~(uint32_t{1} << i);
  }
  uint32_t args = 0, results = 0;
  for (const SavedPart& part : op.saved) {
    if ((part.params & needed) == 0) continue;
    args |= part.args;
    results |= part.results;
  }
  if (!is_known && args != 0) std::for_each(node->edges.begin(), node->edges.end(), append);
  for (size_t i = 0; is_known && i < edges.size(); ++i) {
    if (edges[i] >= 0 && (args >> i & 1) != 0) append(node->edges[static_cast<size_t>(edges[i])]);
  }
  for (; results != 0; results &= results - 1) {
    reads->push_back({node, static_cast<uint32_t>(std::countr_zero(results))});
  }
}

}  // namespace tt::client
