#include "client/autograd/backward.h"

#include "client/autograd/backward_pass.h"
#include "client/session/operand.h"
#include "client/session/program_trace.h"
#include "client/session/session.h"
#include "engine/schema/error.h"

namespace tt::client {
namespace {

void issue(const Tensor& tensor, std::string_view op, Args args, uint32_t site) {
  CallOptions options;
  options.site = site;
  tensor->session->call_with_metas(*find_op(op), args, {}, options);
}

// Stores a gradient from backward() in `tensor`, adding it to an existing one.
void keep_grad(Handle& tensor, Tensor gradient, bool create_graph) {
  if (!tensor.is_leaf() && tensor.grad) {
    static const Op& add = *find_op("add");
    const Arg args[] = {Arg(tensor.grad.get()), Arg(gradient.get()), Arg(int64_t{1})};
    CallOptions options;
    options.grad = create_graph;
    tensor.grad = tensor.session->call(add, args, options)[0];
  } else if (create_graph) {
    tensor.grad = std::move(gradient);
  } else {
    keep_accumulated(tensor, std::move(gradient));
  }
}

}  // namespace

void backward(absl::Span<const Tensor> roots, absl::Span<const Tensor> gradients, bool retain_graph, bool create_graph,
              uint32_t site, absl::Span<const Tensor> inputs) {
  // A Program computes gradients; its runs accumulate them.
  ProgramTrace* const trace = roots.empty() ? nullptr : ProgramTrace::of(*roots[0]->session);
  const bool accumulate = trace == nullptr;
  check(ErrorKind::kNotImplemented, accumulate || !create_graph,
        "[backward] a Program cannot contain a pass with create_graph=True that sets .grad; use torch.autograd.grad()");
  BackwardPass pass(roots, gradients, {accumulate, retain_graph, create_graph, site, accumulate && !inputs.empty()});
  std::vector<Tensor> captures;
  if (inputs.empty()) captures = pass.tensors_with_grad();
  for (const Tensor& input : inputs) {
    check(input->requires_grad, "One of the differentiated Tensors does not require grad");
    if (pass.reaches(input)) captures.push_back(input);
  }
  if (!inputs.empty() && captures.empty()) {
    // Without captures a pass would accumulate into all leaves.
    for (size_t i = 0; i < roots.size() && gradients.empty(); ++i) {
      check(roots[i]->numel() == 1, "grad can be implicitly created only for scalar outputs, got ",
            to_string(roots[i]->sizes));
    }
    return;
  }
  std::vector<Tensor> results = pass.run(captures);
  for (size_t i = 0; i < captures.size(); ++i) {
    if (!results[i]) continue;
    if (trace != nullptr) [[unlikely]] {
      trace->accumulate_grad(captures[i], std::move(results[i]), site);
    } else {
      keep_grad(*captures[i], std::move(results[i]), create_graph);
    }
  }
}

std::vector<Tensor> grad(absl::Span<const Tensor> roots, absl::Span<const Tensor> gradients,
                         absl::Span<const Tensor> inputs, bool retain_graph, bool create_graph, bool allow_unused,
                         uint32_t site) {
  BackwardPass pass(roots, gradients, {false, retain_graph, create_graph, site});
  std::vector<Tensor> captures;
  for (const Tensor& input : inputs) {
    check(input->requires_grad, "One of the differentiated Tensors does not require grad");
    if (pass.reaches(input)) captures.push_back(input);
  }
  std::vector<Tensor> captured = pass.run(captures), results;
  for (size_t i = 0, next = 0; i < inputs.size(); ++i) {
    bool used = next < captures.size() && captures[next] == inputs[i];
    results.push_back(used ? captured[next++] : Tensor());
    check(results.back() || allow_unused,
          "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this "
          "is "
          "the desired behavior.");
  }
  return results;
}

int64_t custom_function(absl::Span<const Tensor> inputs, absl::Span<const Tensor> outputs, BackwardFunction backward,
                        uint32_t site, std::string name, bool wants_undefined) {
  check(!outputs.empty(), "expected at least one output of a custom function, got none");
  Ref<GraphNode> node;
  absl::InlinedVector<GraphEdge, 2> edges;
  for (const Tensor& input : inputs) edges.push_back(input && input->requires_grad ? edge_of(input) : GraphEdge{});
  node = Ref<GraphNode>(new GraphNode(nullptr, nullptr));
  node->edges = std::move(edges);
  GraphExtras& extras = node->mutable_extras();
  extras.name = std::move(name);
  extras.stop = next_stop(1);
  extras.function = std::move(backward);
  extras.wants_undefined = wants_undefined;
  for (const Tensor& output : outputs) extras.outputs.push_back(*output);
  const ListArg of(inputs), made(outputs);
  const Arg args[] = {extras.stop, of.arg(), made.arg()};
  issue(outputs[0], "custom_function", args, site);
  for (uint32_t i = 0; i < outputs.size(); ++i) set_grad_node(*outputs[i], node, i);
  return extras.stop;
}

int64_t add_hook(const Tensor& tensor, BackwardFunction hook, uint32_t site) {
  tensor->follow_base();
  check(tensor->requires_grad, "cannot register a hook on a tensor that doesn't require gradient");
  GraphEdge edge = edge_of(tensor);
  int64_t stop = next_stop(1);
  TensorMeta meta = *tensor;
  edge.node->mutable_extras().hooks.push_back({stop, edge.output, std::move(hook), std::move(meta)});
  const Arg args[] = {stop, tensor.get()};
  issue(tensor, "hook", args, site);
  return stop;
}

void remove_hook(const Tensor& tensor, int64_t number, uint32_t site) {
  if (!tensor->requires_grad) return;
  std::erase_if(edge_of(tensor).node->mutable_extras().hooks,
                [&](const GraphHook& hook) { return hook.stop == number; });
  const Arg args[] = {number, tensor.get()};
  issue(tensor, "unhook", args, site);
}

void set_requires_grad(const Tensor& leaf, bool value, uint32_t site) {
  check(leaf->is_leaf(), "you can only change requires_grad flags of leaf variables.");
  check(!value || has_gradients(leaf->dtype), "only Tensors of floating point and complex dtype can require gradients");
  if (leaf->requires_grad == value) return;
  const Arg args[] = {leaf.get(), value};
  issue(leaf, "requires_grad", args, site);
  leaf->requires_grad = value;
}

void move_leaf(const Tensor& source, const Tensor& target, uint32_t site) {
  if (!source->requires_grad && !source->grad && !source->leaf_node) return;
  const Arg args[] = {source.get(), target.get()};
  issue(source, "move_leaf", args, site);
  target->requires_grad = source->requires_grad;
  target->grad = std::move(source->grad);
  target->leaf_node = std::move(source->leaf_node);
  if (target->leaf_node) target->leaf_node->move_leaf(target.get());
}

std::vector<Tensor> reached_leaves(absl::Span<const Tensor> roots) {
  if (roots.empty()) return {};
  const BackwardPass pass(roots, roots, {.accumulate = false});  // the gradients are not used
  std::vector<Tensor> leaves = pass.tensors_with_grad();
  std::erase_if(leaves, [](const Tensor& tensor) { return !tensor->is_leaf(); });
  return leaves;
}

void retain_grad(const Tensor& tensor) {
  check(tensor->requires_grad, "can't retain_grad on Tensor that has requires_grad=False");
  if (tensor->is_leaf() || tensor->retains_grad) return;
  check(ErrorKind::kNotImplemented, !is_traced(tensor->id),
        "[retain_grad] a Program stores gradients of leaves only; use torch.autograd.grad");
  tensor->retains_grad = true;
  edge_of(tensor).node->mutable_extras().retained.push_back(tensor.get());
}

}  // namespace tt::client
