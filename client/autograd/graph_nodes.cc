#include "client/autograd/graph_nodes.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "client/autograd/backward.h"
#include "client/session/operand.h"
#include "client/session/session.h"
#include "engine/schema/error.h"

namespace tt::client {
namespace {

// How the engine finds the nodes of a call (autograd/nodes/graph_nodes.h).
struct CallName {
  int64_t first;
  int64_t op;
  int64_t rank;  // how many calls of this name are later
};

CallName name_of(const Tensor& root, const GraphNode& node) {
  check(ErrorKind::kNotImplemented, node.op() != nullptr && node.first != 0,
        "this node belongs to no call of an operator: it stands for a view, an in-place write or a backward pass");
  CallName name{static_cast<int64_t>(node.first), node.op()->id, 0};
  absl::flat_hash_set<const GraphNode*> seen;
  std::vector<const GraphNode*> left = {edge_of(root).node.get()};
  seen.insert(left[0]);
  while (!left.empty()) {
    const GraphNode* one = left.back();
    left.pop_back();
    if (one->first == node.first && one->sequence() > node.sequence()) {
      check(ErrorKind::kNotImplemented, !node.op()->is_composite && !one->op()->is_composite,
            "several calls have written to the result of [", node.op()->name, "], which the engine cannot distinguish");
      if (one->op() == node.op()) ++name.rank;
    }
    for (const GraphEdge& edge : one->edges) {
      if (edge.node && seen.insert(edge.node.get()).second) left.push_back(edge.node.get());
    }
  }
  check(seen.contains(&node), "expected a node of the graph of the root");
  return name;
}

Tensor issue(const Tensor& root, std::string_view op, Args args, bool grad, uint32_t site) {
  CallOptions options;
  options.grad = grad;
  options.site = site;
  return root->session->call(*find_op(op), args, options)[0];
}

// The destinations of the gradients that a call computes, for graph_hook.
struct Inputs {
  std::vector<int64_t> places;
  Tensors leaves;
};

Inputs inputs_of(const GraphNode& node) {
  using Destination = std::pair<uint64_t, std::pair<const GraphNode*, uint32_t>>;
  std::vector<Destination> others;
  Inputs inputs;
  for (const GraphEdge& edge : node.edges) {
    if (!edge.node || edge.node->is_leaf()) continue;
    const Destination destination{edge.node->sequence(), {edge.node.get(), edge.output}};
    if (std::find(others.begin(), others.end(), destination) == others.end()) others.push_back(destination);
  }
  std::sort(others.begin(), others.end(), [](const Destination& a, const Destination& b) {
    return std::pair(a.first, a.second.second) < std::pair(b.first, b.second.second);
  });
  for (const GraphEdge& edge : node.edges) {
    if (!edge.node) continue;
    if (edge.node->is_leaf()) {
      check(ErrorKind::kNotImplemented, !node.op()->is_composite || edge.node->leaf() != nullptr,
            "[register_hook] a leaf tensor that the operator has read no longer exists");
      inputs.places.push_back(~static_cast<int64_t>(inputs.leaves.size()));
      if (edge.node->leaf()) inputs.leaves.emplace_back(edge.node->leaf());
      continue;
    }
    const Destination destination{edge.node->sequence(), {edge.node.get(), edge.output}};
    inputs.places.push_back(std::find(others.begin(), others.end(), destination) - others.begin());
  }
  return inputs;
}

}  // namespace

std::string describe_node(const Tensor& root, const GraphNode& node, uint32_t site) {
  const CallName name = name_of(root, node);
  const Arg args[] = {root.get(), name.first, name.op, name.rank};
  return root->session->read(issue(root, "graph_describe", args, false, site), site).bytes;
}

Tensor saved_value(const Tensor& root, const Ref<GraphNode>& node, int64_t number, int64_t place, uint32_t site) {
  const CallName name = name_of(root, *node);
  const Arg args[] = {root.get(), name.first, name.op, name.rank, number, place};
  return issue(root, "graph_saved", args, !node->op()->is_composite, site);
}

void set_saved_history(const Tensor& value, const Ref<GraphNode>& node, int64_t edge) {
  if (edge < 0) return set_grad_node(*value, node, static_cast<uint32_t>(~edge));
  for (const GraphEdge& one : node->edges) {
    if (one.node && edge-- == 0 && !one.node->is_leaf()) set_grad_node(*value, one.node, one.output);
  }
}

Tensor at_present_edge(const Tensor& tensor, uint32_t site) {
  tensor->follow_base();
  check(tensor->requires_grad, "expected a tensor that requires grad");
  GraphEdge edge = edge_of(tensor);
  if (edge.node->is_leaf()) return tensor;
  const TensorMeta& meta = *tensor;
  const Arg args[] = {int64_t{0}, int64_t{0}, int64_t{0}, tensor.get()};  // of no pass
  CallOptions options;
  options.site = site;
  Tensor view = tensor->session->call_with_metas(*find_op("backward_history"), args, {&meta, 1}, options)[0];
  set_view_at(view, *tensor, std::move(edge));
  return view;
}

int64_t add_node_hook(const Tensor& root, const Ref<GraphNode>& node, HookKind kind, BackwardFunction hook,
                      uint32_t site) {
  const int64_t stop = next_stop(1);
  GraphHook added{stop, 0, std::move(hook), TensorMeta(), kind};
  const bool is_function = node->extras() && node->extras()->stop != 0;  // the client runs it, and so its hooks
  if (is_function) {
    added.inputs = static_cast<uint32_t>(node->edges.size());
    added.outputs = static_cast<uint32_t>(node->extras()->outputs.size());
  } else {
    const bool is_own = kind == HookKind::kBefore && edge_of(root).node == node;
    const bool is_single = node->op() && node->op()->num_outputs == 1;
    check(ErrorKind::kNotImplemented, is_own || !node->op() || !node->op()->is_composite || is_single,
          "the operator has several results and is composed of other operators; call register_hook() of each tensor");
    const CallName name = is_own ? CallName{0, 0, 0} : name_of(root, *node);
    const Inputs inputs = kind == HookKind::kAfter ? inputs_of(*node) : Inputs();
    const ListArg leaves(inputs.leaves);
    const Arg args[] = {stop,      static_cast<int64_t>(kind), root.get(),  name.first, name.op,
                        name.rank, SizesView(inputs.places),   leaves.arg()};
    const std::string bytes = root->session->read(issue(root, "graph_hook", args, false, site), site).bytes;
    int64_t counts[2] = {0, 0};
    check(bytes.size() == sizeof(counts), "expected two numbers from the engine");
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(counts));
    added.inputs = static_cast<uint32_t>(counts[0]);
    added.outputs = static_cast<uint32_t>(counts[1]);
  }
  node->mutable_extras().hooks.push_back(std::move(added));
  return stop;
}

void remove_node_hook(const Tensor& root, GraphNode& node, int64_t number, uint32_t site) {
  std::vector<GraphHook>& hooks = node.mutable_extras().hooks;
  const auto found =
      std::find_if(hooks.begin(), hooks.end(), [&](const GraphHook& hook) { return hook.stop == number; });
  if (found == hooks.end()) return;
  if (!node.is_leaf()) {
    // The engine still stops there. Without a living root it could not find the node.
    found->function = nullptr;
    return;
  }
  hooks.erase(found);
  if (!root) return;
  const Arg args[] = {number, root.get()};
  CallOptions options;
  options.site = site;
  root->session->call_with_metas(*find_op("unhook"), args, {}, options);
}

}  // namespace tt::client
