// Checks of a tape that was read from an image: formulas use a node's arguments and tensors without checks of their own,
// because the operator's call was checked when the node was recorded.

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "autograd/nodes/client_function_node.h"
#include "autograd/nodes/hooked_call.h"
#include "autograd/nodes/operator_node.h"
#include "autograd/nodes/view_node.h"
#include "autograd/tape_image.h"
#include "engine/schema/op.h"

namespace tt::autograd {
namespace {

// A node with more results has their metadata in a list.
constexpr uint32_t kFewResults = 8;

bool has(uint32_t mask, size_t bit) { return bit < 32 && (mask >> bit & 1) != 0; }

// What the formulas of the gradients that are needed read.
struct Needs {
  uint32_t args = 0, metas = 0, results = 0;
};

Needs needs_of(const Gradient& gradient, uint32_t needed) {
  Needs needs;
  for (const GradientPart& part : gradient.parts) {
    if ((part.params & needed) == 0) continue;
    needs.args |= part.args;
    needs.metas |= part.metas;
    needs.results |= part.results;
  }
  return needs;
}

// Whether a node may have this instead of an argument: a tensor's value is saved elsewhere, and of a list of tensors
// only the length is kept.
bool is_valid_argument(const Param& param, const Arg& arg, bool is_read) {
  switch (param.type) {
    case ParamType::kTensor: return arg.is_none() || (param.accepts_number && arg.is_number());
    case ParamType::kTensors: return arg.kind == Arg::Kind::kTensors || (param.optional && arg.is_none());
    default: return param.accepts(arg) || (arg.is_none() && !is_read);
  }
}

}  // namespace

void TapeImage::check_operator(const OperatorNode& node) {
  const Op& op = *node.op_;
  const Needs needs = needs_of(*node.gradient_, node.needed_);
  const size_t args = node.args_.size(), outputs = node.outputs();
  require(args == op.params.size(), "an operator's arguments");
  require(op.num_outputs < 0 || outputs == std::max<size_t>(static_cast<size_t>(op.num_outputs), 1),
          "an operator's results");
  require(outputs <= kFewResults ? node.many_results_.empty() : node.many_results_.size() == outputs,
          "an operator's results");
  std::vector<size_t> saved_at(args), saved_results(std::min<size_t>(outputs, kFewResults));
  for (const Saved& saved : node.saved_) {
    const bool is_argument = saved.at >= 0;
    const auto at = static_cast<size_t>(is_argument ? saved.at : ~saved.at);
    std::vector<size_t>& counts = is_argument ? saved_at : saved_results;
    require(at < counts.size(), "a saved tensor's place");
    ++counts[at];
    const bool may_be_absent = is_argument && op.params[at].type == ParamType::kTensors;
    require(saved.is_stored() || (saved.meta && node.saved_stop_ != 0) || (may_be_absent && !saved.meta),
            "a saved tensor");
  }
  size_t shapes = 0;
  for (const Shape* shape = node.shapes_.get(); shape != nullptr; shape = shape->next.get(), ++shapes) {
    require(shape->at < static_cast<int64_t>(args) && ~shape->at < static_cast<int64_t>(outputs) &&
                shape == node.find_shape(shape->at),
            "the sizes of an argument or a result");
  }
  for (size_t i = 0; i < args; ++i) {
    const Param& param = op.params[i];
    const Arg& arg = node.args_[i];
    require(is_valid_argument(param, arg, has(node.gradient_->plain, i)), "an operator's argument");
    if (param.type == ParamType::kDevice && !arg.is_none()) decode_device(arg.integer);
    if (param.type == ParamType::kTensors) {
      const size_t count = arg.is_none() ? 0 : arg.size;
      require(node.released_ || !has(needs.args, i) || saved_at[i] == count, "the saved tensors of a list");
      require(!has(needs.metas, i) || (node.list_sizes_ && node.list_sizes_->size() == count), "the sizes of a list");
    } else if (param.type == ParamType::kTensor) {
      const auto at = static_cast<int16_t>(i);
      const bool is_absent = param.optional || arg.is_number();
      require(saved_at[i] <= 1, "one saved tensor per argument");
      require(node.released_ || !has(needs.args, i) || is_absent || saved_at[i] == 1, "the saved tensors of a formula");
      require(node.released_ || !has(needs.metas, i) || is_absent || saved_at[i] == 1 || node.find_shape(at),
              "the sizes that a formula reads");
    }
  }
  for (size_t i = 0; i < saved_results.size(); ++i) {
    require(saved_results[i] <= 1 && (node.released_ || !has(needs.results, i) || saved_results[i] == 1),
            "the saved results of a formula");
    require(outputs == 1 || !node.many_results_.empty() || node.find_shape(static_cast<int16_t>(~i)) != nullptr,
            "the sizes of each result");
  }
}

void TapeImage::check_edges(const Node& node) {
  const size_t edges = node.edges.size();
  for (const Edge& edge : node.edges) {
    require(has_gradients(edge.dtype), "a dtype that has gradients");
    require(!edge.node || edge.output < edge.node->outputs(), "a node's result");
  }
  switch (node.type()) {
    case Node::Type::kLeaf: return require(edges == 0, "a leaf without edges");
    case Node::Type::kView: return require(edges == 1 && node.edges[0].node, "a view's edge");
    case Node::Type::kWrite: return require(edges == 2, "the edges of a write");
    case Node::Type::kClientFunction:
      return require(edges == static_cast<const ClientFunctionNode&>(node).inputs_.size(), "a function's edges");
    case Node::Type::kOperator: break;
  }
  const auto& op = static_cast<const OperatorNode&>(node);
  require(edges == op.first_edge(op.args_.size()), "an operator's edges");
  for (const Saved& saved : op.saved_) {
    require(saved.edge < static_cast<int64_t>(edges), "a saved tensor's edge");
  }
}

// Applies the operator's rule to the metadata that the node has. Throws the rule's Error.
TapeImage::ResultSizes TapeImage::result_sizes(const Node& node) {
  switch (node.type()) {
    case Node::Type::kLeaf: return std::nullopt;
    case Node::Type::kView: return std::vector<Sizes>{static_cast<const ViewNode&>(node).region().view.sizes};
    case Node::Type::kWrite: return std::vector<Sizes>{static_cast<const WriteNode&>(node).region().base.sizes};
    case Node::Type::kClientFunction: {
      std::vector<Sizes> sizes;
      for (const TensorMeta& meta : static_cast<const ClientFunctionNode&>(node).outputs_) sizes.push_back(meta.sizes);
      return sizes;
    }
    case Node::Type::kOperator: break;
  }
  const auto& of = static_cast<const OperatorNode&>(node);
  if (of.op_->is_dynamic) return std::nullopt;
  std::vector<Arg> args(of.args_.begin(), of.args_.end());
  std::vector<std::vector<const TensorMeta*>> lists(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    const Param& param = of.op_->params[i];
    if (param.type == ParamType::kTensors && args[i].kind == Arg::Kind::kTensors) {
      for (const Saved& saved : of.saved_) {
        if (saved.at == static_cast<int16_t>(i)) lists[i].push_back(saved.meta ? saved.meta.get() : saved.tensor.get());
      }
      if (lists[i].size() != args[i].size) return std::nullopt;
      args[i] = Arg(absl::MakeConstSpan(lists[i]));
    } else if (param.type == ParamType::kTensor && args[i].is_none()) {
      args[i] = Arg(of.find_meta(static_cast<int16_t>(i)));
    }
    if (!param.accepts(args[i])) return std::nullopt;  // it was not kept
  }
  Inference inferred;
  infer(*of.op_, args, false, &inferred);
  require(std::max<size_t>(inferred.outputs.size(), 1) == node.outputs(), "an operator's results");
  std::vector<Sizes> sizes;
  for (const TensorMeta& meta : inferred.outputs) sizes.push_back(meta.sizes);
  return sizes;
}

void TapeImage::check_call(const std::shared_ptr<HookedCall>& call) {
  require(std::any_of(call->nodes.begin(), call->nodes.end(), [](const Node* node) { return node != nullptr; }),
          "the nodes of a call");
  require(std::find(call->stops.begin(), call->stops.end(), 0) == call->stops.end(), "a hook with a number");
  absl::flat_hash_set<std::pair<const Node*, uint32_t>> destinations;
  std::vector<HookedCall::Input> by_edge;
  for (const Node* node : call->nodes) {
    if (node == nullptr) continue;
    const bool has_hook = node->hooks && std::any_of(node->hooks->begin(), node->hooks->end(),
                                                     [&](const Hook& hook) { return hook.call == call; });
    require(has_hook, "a call that its nodes have");
    for (const Edge& edge : node->edges) {
      if (!edge.node) continue;
      destinations.emplace(edge.node.get(), edge.output);
      by_edge.push_back({edge.node.get(), edge.output});
    }
  }
  for (const HookedCall::Input& input : call->inputs) {
    require(input.node == nullptr || destinations.contains({input.node, input.output}), "the inputs of a call");
  }
  if (!call->by_edge) return;
  require(call->nodes.size() == 1 && std::equal(by_edge.begin(), by_edge.end(), call->inputs.begin(),
                                                call->inputs.end(),
                                                [](const HookedCall::Input& a, const HookedCall::Input& b) {
                                                  return a.node == b.node && a.output == b.output;
                                                }),
          "an input per edge of a call");
}

}  // namespace tt::autograd
