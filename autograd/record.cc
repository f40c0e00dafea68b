#include "autograd/record.h"

#include "autograd/nodes/history.h"
#include "autograd/nodes/operator_node.h"
#include "autograd/nodes/tape.h"
#include "autograd/nodes/view_node.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"

namespace tt::autograd {
namespace {

Ref<OperatorNode> make_node(const Call& call) {
  if (!call.inferred.requires_grad) return {};
  const Gradient* gradient = find_gradient(call.op->id);
  check(ErrorKind::kNotImplemented, gradient != nullptr, "[", std::string(call.op->name), "] has no gradient");
  return Ref<OperatorNode>(new OperatorNode(call, *gradient));
}

void save_results(const Call& call, const Ref<OperatorNode>& node) {
  node->save_results(call);
  if (Context::current().saved_tensors == SavedTensors::kShared) [[likely]]
    return;
  Tape::current().saved().add(node);
  Tape::current().recomputations().add(*node);
}

// Executes the call, unless its function runs again and its first run has kept the results.
void execute(Call& call, OperatorNode& node) {
  const SavedTensors where = Context::current().saved_tensors;
  if (where != SavedTensors::kNowhere && where != SavedTensors::kTwice) [[likely]]
    return Dispatcher::instance().redispatch(call, Key::kAutograd);
  Recomputations& recomputations = Tape::current().recomputations();
  const int64_t at = recomputations.next_results(call);
  if (recomputations.reuse(at, call)) return;
  Dispatcher::instance().redispatch(call, Key::kAutograd);
  recomputations.keep(at, call, node);
}

void check_writable(const Tensor& target) {
  if (!target->base || !target->base->requires_grad) return;
  check(target->requires_grad || target->follows_base || !has_gradients(target->dtype),
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use "
        "case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and "
        "the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or both "
        "outside (if you want the inplace to be tracked).");
  if (!target->base->is_leaf()) return;
  fail(ErrorKind::kRuntime, "a view of a leaf Variable that requires grad is being used in an in-place operation.");
}

// Whether the call's node computes the gradient of the old value of `target`.
bool is_read(const Call& call, const Tensor& target) {
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Arg& arg = call.args[i];
    if (call.op->params[i].differentiable && arg.kind == Arg::Kind::kTensor && arg.tensor == target.get()) return true;
  }
  return false;
}

// Updates the history of `target` after `node` wrote to it. `node` is null if the write has no gradient.
void rebase(const Call& call, const Tensor& target, const Ref<Node>& node, uint32_t output) {
  if (!has_gradients(target.dtype())) return;
  Edge written{node, output, target.dtype()};
  const Tensor base(target->base.get());
  if (base) {
    Edge old = base.requires_grad() ? edge_of(base) : Edge{};
    if (!node && !old.node) return;
    set_history(base, make_write_node(base, target, std::move(old), std::move(written)), 0);
    target->requires_grad = true;  // edge_of() creates a new node that reads the base
    return;
  }
  bool had_node = target.requires_grad() && !target->is_leaf();
  if (node && (!had_node || is_read(call, target))) {
    set_history(target, node, output);
  } else if (had_node) {
    set_history(target, make_write_node(target, target, edge_of(target), std::move(written)), 0);
  }
}

void record_in_place(Call& call) {
  for (const Tensor& target : call.outputs) check_writable(target);
  Ref<OperatorNode> node = make_node(call);
  Dispatcher::instance().redispatch(call, Key::kAutograd);
  if (node) save_results(call, node);
  for (uint32_t i = 0; i < call.outputs.size(); ++i) rebase(call, call.outputs[i], node, i);
}

}  // namespace

void record(Call& call) {
  const Context& context = Context::current();
  if (!context.grad_enabled || context.inference) return Dispatcher::instance().redispatch(call, Key::kAutograd);
  if (call.into) return record_in_place(call);
  Ref<OperatorNode> node = make_node(call);
  if (!node) return Dispatcher::instance().redispatch(call, Key::kAutograd);
  execute(call, *node);
  save_results(call, node);
  for (uint32_t i = 0; i < call.outputs.size(); ++i) {
    if (has_gradients(call.outputs[i].dtype())) set_history(call.outputs[i], node, i);
  }
}

}  // namespace tt::autograd
