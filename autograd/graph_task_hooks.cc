// The hooks of a backward pass that run before a node, and after the nodes of a call.

#include <algorithm>

#include "autograd/graph_task.h"
#include "autograd/nodes/accumulate.h"
#include "engine/schema/error.h"

namespace tt::autograd {
namespace {

bool is_defined(const Tensor& gradient) { return !!gradient; }

// Returns the client's replacement of a gradient. An undefined gradient is null, or as gradients_at() returned it.
Tensor replacement_of(const Tensor& gradient, Tensor replacement) {
  if (replacement && replacement.dtype() == DType::kBool) replacement = Tensor();
  check(!replacement || !!gradient, "can't replace a None gradient with a non-None value");
  check(!replacement || replacement.sizes() == gradient.sizes(), "hook has changed the size of value, got ",
        replacement ? to_string(replacement.sizes()) : "", " for ", gradient ? to_string(gradient.sizes()) : "");
  check(!replacement || replacement.dtype() == gradient.dtype(), "hook has changed the type of value (was ",
        gradient ? name(gradient.dtype()) : "", " got ", replacement ? name(replacement.dtype()) : "", ")");
  return replacement;
}

}  // namespace

GraphTask::HeldCall& GraphTask::held_call(const std::shared_ptr<HookedCall>& call) {
  std::unique_ptr<HeldCall>& held = held_calls_[call.get()];
  if (held) return *held;
  held = std::make_unique<HeldCall>();
  held->call = call;
  held->stops = call->stops;
  held->inputs.resize(call->inputs.size());
  held->deliveries.resize(call->inputs.size());
  for (const Node* node : call->nodes) {
    const uint32_t state = find(node);
    if (state != kNone && states_[state].needed) ++held->nodes_left;
  }
  return *held;
}

// Holds back the gradients that leave the call's nodes, until all of its nodes have run.
int64_t GraphTask::hold(uint32_t index, const std::shared_ptr<HookedCall>& call, Gradients outputs, Gradients results) {
  const Node& node = *states_[index].node;
  HeldCall& held = held_call(call);
  if (call->nodes.front() == &node) held.outputs.assign(outputs.begin(), outputs.end());
  size_t number = 0;  // of the edge, among those with a node
  for (size_t i = 0; i < results.size(); ++i) {
    const Edge& edge = node.edges[i];
    if (!edge.node) continue;
    size_t input = number++;
    if (!call->by_edge) {
      input = 0;
      while (input < call->inputs.size() &&
             (call->inputs[input].node != edge.node.get() || call->inputs[input].output != edge.output))
        ++input;
    }
    if (input >= call->inputs.size()) {
      deliver(edge, std::move(results[i]));
      continue;
    }
    ++held.deliveries[input];
    if (results[i] && states_[find(edge.node.get())].needed)
      accumulate(held.inputs[input], std::move(results[i]), /*in_place=*/false, deferred_.get());
  }
  return --held.nodes_left == 0 ? next_after(held) : 0;
}

int64_t GraphTask::next_after(HeldCall& held) {
  const bool reached = std::any_of(held.outputs.begin(), held.outputs.end(), is_defined);
  if (reached && held.stops_done < held.stops.size()) {
    const int64_t stop = held.stops[held.stops_done++];
    client_callbacks_[stop] = {0, 0, Hook::Kind::kAfter, held.call.get()};
    return stop;
  }
  for (size_t i = 0; i < held.inputs.size(); ++i) {
    const HookedCall::Input& input = held.call->inputs[i];
    Edge edge;
    edge.node = Ref<Node>(const_cast<Node*>(input.node));
    edge.output = input.output;
    for (uint32_t left = held.deliveries[i]; left > 0; --left) deliver(edge, std::exchange(held.inputs[i], Tensor()));
  }
  return 0;
}

// Returns the gradients that a hook of kBefore or kAfter reads, with an empty boolean tensor in place of each undefined
// one.
Tensors GraphTask::gradients_at(const ClientCallback& pending) const {
  Tensors gradients;
  const auto add = [&](const Tensor& gradient) {
    const int64_t none = 0;
    gradients.push_back(gradient ? gradient : empty({&none, 1}, DType::kBool, Device{}));
  };
  if (pending.kind == Hook::Kind::kBefore) {
    for (const Tensor& gradient : states_[pending.state].gradients) add(gradient);
    return gradients;
  }
  const HeldCall& held = *held_calls_.at(pending.call);
  for (const Tensor& gradient : held.inputs) add(gradient);
  for (const Tensor& gradient : held.outputs) add(gradient);
  return gradients;
}

void GraphTask::resume_before(const ClientCallback& pending, absl::Span<const Tensor> gradients) {
  State& state = states_[pending.state];
  check(gradients.size() == state.gradients.size(), "expected ", state.gradients.size(), " gradients from a hook, got ",
        gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    state.gradients[i] = replacement_of(state.gradients[i], gradients[i]);
  }
  make_ready(pending.state);
}

void GraphTask::resume_after(const ClientCallback& pending, absl::Span<const Tensor> gradients) {
  HeldCall& held = *held_calls_.at(pending.call);
  check(gradients.size() == held.inputs.size(), "expected ", held.inputs.size(), " gradients from a hook, got ",
        gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    held.inputs[i] = replacement_of(held.inputs[i], gradients[i]);
  }
  check_finite(*held.call->nodes.front(), held.inputs);
  next_after(held);
}

void GraphTask::skip_node(uint32_t index) {
  states_[index].gradients.clear();
  for (const Edge& edge : states_[index].node->edges) deliver(edge, Tensor());
}

// Continues after a stop that the client does not request: a hook leaves the gradients unchanged.
void GraphTask::skip(int64_t stop) {
  const ClientCallback pending = client_callbacks_.at(stop);
  const Node& node = *states_[pending.state].node;
  const bool is_saved = node.saved_stop() == stop;
  if (!is_saved && node.client_node_id() != stop && pending.kind == Hook::Kind::kTensor) {
    const Tensor none;
    return resume_with(stop, absl::Span<const Tensor>(&none, 1));
  }
  client_callbacks_.erase(stop);
  const auto waiting = waiting_states_.extract(stop);
  if (!waiting.empty()) {
    for (uint32_t index : waiting.mapped()) skip_node(index);
  } else if (is_saved || node.client_node_id() == stop) {
    skip_node(pending.state);
  } else if (pending.kind == Hook::Kind::kBefore) {
    make_ready(pending.state);
  } else {
    next_after(*held_calls_.at(pending.call));
  }
}

}  // namespace tt::autograd
