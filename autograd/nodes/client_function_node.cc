#include "autograd/nodes/client_function_node.h"

#include "autograd/formulas/formulas.h"
#include "autograd/nodes/history.h"
#include "engine/dispatch/ops.h"
#include "engine/schema/error.h"

namespace tt::autograd {
namespace {

// Whether `from` broadcasts to `to`.
bool is_expandable(SizesView from, SizesView to) {
  if (from.size() > to.size()) return false;
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t size = from[from.size() - 1 - i];
    if (size != 1 && size != to[to.size() - 1 - i]) return false;
  }
  return true;
}

}  // namespace

ClientFunctionNode::ClientFunctionNode(int64_t client_node_id, absl::Span<const Tensor> inputs,
                                       absl::Span<const Tensor> outputs)
    : Node(static_cast<uint32_t>(outputs.size())), client_node_id_(client_node_id) {
  for (const Tensor& input : inputs) {
    edges.push_back(input && input.requires_grad() ? edge_of(input) : Edge{});
    inputs_.push_back(input ? input.meta() : TensorMeta());
  }
  for (const Tensor& output : outputs) outputs_.push_back(output.meta());
  enter_tape();
}

Tensor ClientFunctionNode::fit(size_t i, Tensor gradient) const {
  if (!gradient || !edges[i].node) return {};
  if (gradient.sizes() != inputs_[i].sizes) {
    check(is_expandable(inputs_[i].sizes, gradient.sizes()), "Function returned an invalid gradient at index ", i,
          " - got ", to_string(gradient.sizes()), " but expected shape compatible with ", to_string(inputs_[i].sizes));
    gradient = formulas::sum_to(gradient, inputs_[i].sizes);
  }
  return gradient.dtype() == edges[i].dtype ? gradient : formulas::cast(gradient, edges[i].dtype);
}

Edge ClientFunctionNode::history_at(int64_t place, const Tensor& tensor) const {
  const bool is_result = place >= 0;
  const auto index = static_cast<size_t>(is_result ? place : ~place);
  const std::vector<TensorMeta>& metas = is_result ? outputs_ : inputs_;
  check(index < metas.size() && (is_result || index < edges.size()),
        "expected a result or an input of a function, got ", place);
  check(tensor.sizes() == metas[index].sizes && tensor.dtype() == metas[index].dtype,
        "expected a tensor like that of "
        "the function, ",
        describe(metas[index]), ", got ", describe(tensor.meta()));
  if (!is_result) return edges[index];
  return {Ref<Node>(const_cast<ClientFunctionNode*>(this)), static_cast<uint32_t>(index), tensor.dtype()};
}

Tensor ClientFunctionNode::zeros(uint32_t output) const {
  const TensorMeta& meta = outputs_.at(output);
  return ops::zeros(meta.sizes, meta.dtype, meta.device);
}

}  // namespace tt::autograd
