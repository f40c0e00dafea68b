#include "autograd/nodes/graph_nodes.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "autograd/nodes/history.h"
#include "autograd/nodes/hooked_call.h"
#include "engine/schema/error.h"

namespace tt::autograd {
namespace {

using OperatorNodes = std::vector<Ref<OperatorNode>>;

std::string name_of(uint16_t op) {
  const Op* found = find_op(op);
  return found ? std::string(found->name) : absl::StrCat("operator ", op);
}

// Returns the operator nodes with this name that the root reaches, the latest first.
OperatorNodes nodes_named(const Tensor& root, uint64_t first) {
  OperatorNodes found;
  if (!root.requires_grad()) return found;
  absl::flat_hash_set<const Node*> seen;
  std::vector<Ref<Node>> left = {edge_of(root).node};
  seen.insert(left[0].get());
  while (!left.empty()) {
    const Ref<Node> node = std::move(left.back());
    left.pop_back();
    if (node->is_operator() && node->first_result() == first)
      found.emplace_back(static_cast<OperatorNode*>(node.get()));
    for (const Edge& edge : node->edges) {
      if (edge.node && seen.insert(edge.node.get()).second) left.push_back(edge.node);
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Ref<OperatorNode>& a, const Ref<OperatorNode>& b) { return a->sequence() > b->sequence(); });
  return found;
}

bool is_same(const HookedCall::Input& a, const HookedCall::Input& b) {
  return a.node == b.node && a.output == b.output;
}

// Returns the distinct destinations of gradients outside of the nodes: the leaves, then the others from the oldest.
std::vector<HookedCall::Input> inputs_of(const OperatorNodes& nodes, const HookedCall& call) {
  std::vector<HookedCall::Input> inputs;
  for (const Ref<OperatorNode>& node : nodes) {
    for (const Edge& edge : node->edges) {
      if (!edge.node || call.contains(edge.node.get())) continue;
      const HookedCall::Input input{edge.node.get(), edge.output};
      const auto same = [&](const HookedCall::Input& known) { return is_same(known, input); };
      if (std::none_of(inputs.begin(), inputs.end(), same)) inputs.push_back(input);
    }
  }
  std::sort(inputs.begin(), inputs.end(), [](const HookedCall::Input& a, const HookedCall::Input& b) {
    if (a.node->is_leaf() != b.node->is_leaf()) return a.node->is_leaf();
    return std::pair(a.node->sequence(), a.output) < std::pair(b.node->sequence(), b.output);
  });
  return inputs;
}

// Puts the inputs of a composite in the client's order. Throws Error if they do not correspond to the client's.
void arrange(HookedCall& call, uint16_t op, absl::Span<const int64_t> order, absl::Span<const Tensor> leaves) {
  const auto is_leaf = [](const HookedCall::Input& input) { return input.node->is_leaf(); };
  const auto first_other = std::find_if_not(call.inputs.begin(), call.inputs.end(), is_leaf);
  const auto others = absl::MakeConstSpan(call.inputs).subspan(static_cast<size_t>(first_other - call.inputs.begin()));
  std::vector<HookedCall::Input> arranged;
  for (int64_t at : order) {
    if (at >= 0 && at < static_cast<int64_t>(others.size())) arranged.push_back(others[static_cast<size_t>(at)]);
    if (at < 0 && ~at < static_cast<int64_t>(leaves.size())) {
      const Tensor& leaf = leaves[static_cast<size_t>(~at)];
      const Node* node = leaf.requires_grad() ? edge_of(leaf).node.get() : nullptr;
      for (const HookedCall::Input& input : call.inputs) {
        if (input.node == node) arranged.push_back(input);
      }
    }
  }
  check(ErrorKind::kNotImplemented, arranged.size() == order.size() && arranged.size() == call.inputs.size(),
        "[register_hook] ", name_of(op), " is composed of other operators, whose gradients leave them at ",
        call.inputs.size(), " places for ", order.size(), " inputs; call register_hook() of the tensors that it reads");
  call.inputs = std::move(arranged);
}

}  // namespace

OperatorNodes find_call(const Tensor& root, const CallName& name) {
  OperatorNodes nodes = nodes_named(root, name.first);
  OperatorNodes own;
  for (const Ref<OperatorNode>& node : nodes) {
    if (node->op().id == name.op) own.push_back(node);
  }
  if (name.rank >= 0 && name.rank < static_cast<int64_t>(own.size())) return {own[static_cast<size_t>(name.rank)]};
  check(ErrorKind::kNotImplemented, !nodes.empty() && own.empty() && name.rank == 0, "the engine has no node of ",
        name_of(name.op), ": it is composed of operators that record nothing of their own here");
  return nodes;
}

std::string describe(absl::Span<const Ref<OperatorNode>> nodes) {
  std::string text = "[";
  for (const Ref<OperatorNode>& node : nodes) absl::StrAppend(&text, text.size() > 1 ? "," : "", node->to_json());
  return text + "]";
}

HookSizes hook_before(int64_t stop, const Tensor& root, const CallName& name) {
  check(stop != 0, "expected a hook with a non-zero number");
  check(name.first != 0 || root.requires_grad(), "expected a root that requires grad");
  const Ref<Node> node = name.first == 0 ? edge_of(root).node : Ref<Node>(find_call(root, name)[0].get());
  node->add_hook({stop, 0, Hook::Kind::kBefore});
  return {0, node->outputs()};
}

HookSizes hook_after(int64_t stop, const Tensor& root, const CallName& name, absl::Span<const int64_t> inputs,
                     absl::Span<const Tensor> leaves) {
  check(stop != 0, "expected a hook with a non-zero number");
  const OperatorNodes nodes = find_call(root, name);
  for (const Hook& hook : nodes[0]->hooks ? *nodes[0]->hooks : std::vector<Hook>()) {
    if (hook.kind != Hook::Kind::kAfter) continue;
    hook.call->stops.push_back(stop);
    return {static_cast<int64_t>(hook.call->inputs.size()), nodes[0]->outputs()};
  }
  auto call = std::make_shared<HookedCall>();
  call->stops.push_back(stop);
  for (const Ref<OperatorNode>& node : nodes) call->nodes.push_back(node.get());
  call->by_edge = nodes[0]->op().id == name.op;
  if (call->by_edge) {
    for (const Edge& edge : nodes[0]->edges) {
      if (edge.node) call->inputs.push_back({edge.node.get(), edge.output});
    }
  } else {
    call->inputs = inputs_of(nodes, *call);
    arrange(*call, name.op, inputs, leaves);
  }
  for (const Ref<OperatorNode>& node : nodes) node->add_hook({0, 0, Hook::Kind::kAfter, call});
  return {static_cast<int64_t>(call->inputs.size()), nodes[0]->outputs()};
}

}  // namespace tt::autograd
