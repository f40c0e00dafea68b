// The operators of engine/ops/autograd.yaml. They have kernels only at Key::kAutograd: the tape does not depend on the
// tensors' device.

#include <algorithm>

#include "autograd/graph_task.h"
#include "autograd/nodes/accumulate.h"
#include "autograd/nodes/client_function_node.h"
#include "autograd/nodes/graph_nodes.h"
#include "autograd/nodes/history.h"
#include "autograd/nodes/leaf.h"
#include "autograd/nodes/tape.h"
#include "autograd/record.h"
#include "engine/dispatch/new_results.h"
#include "engine/dispatch/ops.h"
#include "engine/program/suspension.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"

namespace tt::autograd {
namespace {

std::vector<Tensor> list_of(const Arg& arg) {
  std::vector<Tensor> list;
  for (const TensorMeta* t : arg.list()) list.push_back(Tensor::from(t));
  return list;
}

std::unique_ptr<GraphTask> make_task(const Call& call, size_t first) {
  const Args& args = call.args;
  GraphTaskOptions options{args[first + 3].to_bool(), args[first + 4].to_bool(), args[first + 5].to_bool()};
  return std::make_unique<GraphTask>(list_of(args[first]), list_of(args[first + 1]), list_of(args[first + 2]), options);
}

// Sets the call's result to a token that the next step of the pass takes as an argument, so that the failure of a step
// fails the later steps.
void set_step_token(Call& call) { call.outputs.assign(1, allocate(call.inferred.outputs[0])); }

// Returns the unfinished pass whose number is the first argument. All passes of a tape are Tasks.
GraphTask& task_of(const Call& call) { return static_cast<GraphTask&>(Tape::current().find(call.args[0].integer)); }

// Copies gradients that are views, or one tensor for several captures: the results of a Program share no memory.
void own_gradients(Tensors* gradients) {
  for (Tensor& gradient : *gradients) {
    if (is_sole_owner(gradient) && gradient.is_contiguous()) continue;
    gradient = gradient.is_contiguous() ? ops::clone(gradient) : ops::contiguous(gradient);
  }
}

void backward(Call& call) {
  Tape& tape = Tape::current();
  std::shared_ptr<Pass> pass = tape.take_suspended();
  if (!pass) pass = make_task(call, 0);
  try {
    call.outputs = static_cast<GraphTask&>(*pass).finish(list_of(call.args[2]));
    pass = nullptr;  // its references to gradients
    if (CallScope::current().in_program) own_gradients(&call.outputs);
  } catch (const Suspended&) {
    tape.suspend(std::move(pass));
    throw;
  }
}

void backward_begin(Call& call) {
  Tape::current().add(call.args[0].integer, make_task(call, 1));
  set_step_token(call);
}

void backward_until(Call& call) { call.outputs = task_of(call).run_until(call.args[1].integer, call.args[3].ints()); }

void backward_feed(Call& call) {
  task_of(call).resume_with(call.args[1].integer, list_of(call.args[2]));
  set_step_token(call);
}

// A view of the tensor with the history that it has now, whatever is written to it later.
Tensor at_present_edge(const Tensor& tensor) {
  const Tensor view = detach(tensor);
  if (!tensor.requires_grad()) return view;
  const Edge edge = edge_of(tensor);
  set_history(view, edge.node, edge.output);
  return view;
}

// Without a pass, the history is that of the tensor itself.
void backward_history(Call& call) {
  if (call.args[0].integer == 0) return call.outputs.assign(1, at_present_edge(call.tensor(3)));
  const GraphTask& task = task_of(call);
  call.outputs.assign(1, task.with_history(call.args[1].integer, call.args[2].integer, call.tensor(3)));
}

void backward_end(Call& call) { call.outputs = task_of(call).finish(list_of(call.args[1])); }

void backward_drop(Call& call) { Tape::current().drop(call.args[0].integer); }

void check_gradient(const Tensor& leaf, const Tensor& gradient) {
  check(leaf->is_leaf(), "expected a leaf tensor, got a non-leaf tensor");
  if (!gradient) return;
  check(gradient.sizes() == leaf.sizes(), "assigned grad has data of a different size, got ",
        to_string(gradient.sizes()), " for ", to_string(leaf.sizes()));
  check(gradient.dtype() == leaf.dtype() && gradient.device() == leaf.device(),
        "assigned grad has data of a different type, got ", describe(gradient.meta()), " for ", describe(leaf.meta()));
}

void set_grads(Call& call) {
  std::vector<Tensor> leaves = list_of(call.args[0]), grads = list_of(call.args[1]);
  check(leaves.size() == grads.size(), "expected one gradient or None per leaf, got ", leaves.size(), " leaves and ",
        grads.size(), " gradients");
  for (size_t i = 0; i < leaves.size(); ++i) {
    check_gradient(leaves[i], grads[i]);
    if (!grads[i] && !leaves[i]->autograd) continue;
    History& history = history_of(leaves[i]);
    history.grad = std::move(grads[i]);
    history.grad_error = nullptr;
  }
}

void accumulate_grads(Call& call) {
  const std::vector<Tensor> leaves = list_of(call.args[0]);
  std::vector<Tensor> gradients = list_of(call.args[1]);
  check(leaves.size() == gradients.size(), "expected one gradient per leaf, got ", leaves.size(), " leaves and ",
        gradients.size(), " gradients");
  for (size_t i = 0; i < leaves.size(); ++i) {
    check_gradient(leaves[i], gradients[i]);
    check(leaves[i].requires_grad(), "expected leaves that require grad");
  }
  const bool replaces = call.args[2].to_bool();
  call.outputs.clear();
  for (size_t i = 0; i < leaves.size(); ++i) {
    History& history = history_of(leaves[i]);  // created if there is none
    if (replaces) {
      history.grad = Tensor();
      history.grad_error = nullptr;
    }
    Tensor sum = LeafNode::add_to(*leaves[i].get(), std::move(gradients[i]), /*in_place=*/true);
    if (!replaces) call.outputs.push_back(std::move(sum));
  }
}

void requires_grad(Call& call) {
  Tensor input = call.tensor(0);
  bool value = call.args[1].to_bool();
  check(input->is_leaf(), "you can only change requires_grad flags of leaf variables.");
  check(!value || has_gradients(input.dtype()),
        "only Tensors of floating point and complex dtype can require gradients, got ", name(input.dtype()));
  input->requires_grad = value;
}

void move_leaf(Call& call) {
  Tensor source = call.tensor(0), target = call.tensor(1);
  check(source->is_leaf() && target->is_leaf() && !target.requires_grad() && !source.same(target),
        "expected a leaf as source, and another leaf without requires_grad as target");
  check(source.sizes() == target.sizes() && source.dtype() == target.dtype() && source.device() == target.device(),
        "expected tensors of the same sizes, dtype and device, got ", describe(source.meta()), " and ",
        describe(target.meta()));
  target->requires_grad = source.requires_grad();
  if (!source->autograd) return;
  History &from = history_of(source), &to = history_of(target);
  if (to.leaf) to.leaf->forget();
  to.leaf = std::move(from.leaf);
  if (to.leaf) to.leaf->move_to(target.get());
  to.grad = std::move(from.grad);
  to.grad_error = std::move(from.grad_error);
}

void custom_function(Call& call) {
  std::vector<Tensor> inputs = list_of(call.args[1]), outputs = list_of(call.args[2]);
  check(call.args[0].integer != 0 && !outputs.empty(),
        "expected a function with a non-zero number and at least one result, got number ", call.args[0].integer,
        " and ", outputs.size(), " results");
  for (const Tensor& output : outputs) {
    check(output && has_gradients(output.dtype()), "expected results of floating-point or complex dtype, got ",
          output ? name(output.dtype()) : "no tensor");
    check(!output.requires_grad() || !output->is_leaf(),
          "a leaf Variable that requires grad has been used in an in-place operation.");
  }
  Ref<Node> node(new ClientFunctionNode(call.args[0].integer, inputs, outputs));
  for (uint32_t i = 0; i < outputs.size(); ++i) set_history(outputs[i], node, i);
}

void hook(Call& call) {
  Tensor input = call.tensor(1);
  check(call.args[0].integer != 0 && input.requires_grad(),
        "cannot register a hook on a tensor that doesn't require gradient");
  Edge edge = edge_of(input);
  edge.node->add_hook({call.args[0].integer, edge.output});
}

void count_data_write(Call& call) { Tape::current().count_data_write(call.tensor(0)); }

void unhook(Call& call) {
  Tensor input = call.tensor(1);
  if (!input.requires_grad()) return;
  Edge edge = edge_of(input);
  std::vector<Hook>* hooks = edge.node->hooks.get();
  if (!hooks) return;
  std::erase_if(*hooks, [&](const Hook& hook) { return hook.stop == call.args[0].integer; });
}

void saved_begin(Call& call) {
  constexpr SavedTensors kModes[] = {SavedTensors::kClient,  SavedTensors::kOnCpu, SavedTensors::kCopied,
                                     SavedTensors::kNowhere, SavedTensors::kTwice, SavedTensors::kNowhere,
                                     SavedTensors::kTwice};
  const int64_t mode = call.args[0].integer;
  check(mode >= 0 && mode < static_cast<int64_t>(std::size(kModes)), "expected a mode from 0 to 6, got ", mode);
  const SavedTensors where = kModes[mode];
  Tape& tape = Tape::current();
  tape.recomputations().end();
  if (where == SavedTensors::kNowhere || where == SavedTensors::kTwice)
    tape.recomputations().begin(call.args[1].integer, call.args[2].integer, where == SavedTensors::kTwice,
                                /*keeps=*/mode > 4);
  tape.saved().begin();
  Context::current().saved_tensors = where;
}

void saved_stop(Call&) {
  Context::current().saved_tensors = SavedTensors::kShared;
  Tape::current().saved().cancel();
  Tape::current().recomputations().end();
}

void saved_end(Call& call) {
  Context::current().saved_tensors = SavedTensors::kShared;
  const std::vector<int64_t> text =
      Tape::current().saved().end(call.args[0].integer, list_of(call.args[1]), list_of(call.args[2]));
  const int64_t size = static_cast<int64_t>(text.size());
  call.outputs.assign(1, empty({&size, 1}, DType::kInt64, Device{}));
  std::copy(text.begin(), text.end(), call.outputs[0].data_as<int64_t>());
}

void saved_values(Call& call) {
  const std::vector<Tensor>& values = Tape::current().saved().values(call.args[0].integer);
  call.outputs.clear();
  for (const Tensor& value : values) call.outputs.push_back(detach(value));
}

void graph_is_freed(Call& call) {
  const Args& args = call.args;
  const GraphTask task(list_of(args[0]), list_of(args[1]), list_of(args[2]), {args[3].to_bool(), true, false});
  call.outputs.assign(1, empty({}, DType::kBool, Device{}));
  *call.outputs[0].data_as<bool>() = task.needs_freed_tensors();
}

CallName call_name(const Call& call, size_t first) {
  const int64_t op = call.args[first + 1].integer;
  const bool is_loaded = op > op_id::kMax && op <= UINT16_MAX && find_op(static_cast<uint16_t>(op)) != nullptr;
  check((op >= 0 && op <= op_id::kMax) || is_loaded, "expected the number of an operator, got ", op);
  return {static_cast<uint64_t>(call.args[first].integer), static_cast<uint16_t>(op), call.args[first + 2].integer};
}

void graph_describe(Call& call) {
  const std::string text = describe(find_call(call.tensor(0), call_name(call, 1)));
  const auto size = static_cast<int64_t>(text.size());
  call.outputs.assign(1, empty({&size, 1}, DType::kUInt8, Device{}));
  std::copy(text.begin(), text.end(), call.outputs[0].data_as<char>());
}

void graph_saved(Call& call) {
  const std::vector<Ref<OperatorNode>> nodes = find_call(call.tensor(0), call_name(call, 1));
  const int64_t node = call.args[4].integer;
  check(node >= 0 && node < static_cast<int64_t>(nodes.size()), "expected one of ", nodes.size(), " nodes, got ", node);
  Tensor saved = nodes[static_cast<size_t>(node)]->saved_at(call.args[5].integer);
  // The client knows its sizes only, and takes it to be in row-major order.
  if (!saved.is_contiguous()) saved = ops::contiguous(saved);
  call.outputs.assign(1, saved.requires_grad() ? saved : detach(saved));
}

void graph_hook(Call& call) {
  const int64_t stop = call.args[0].integer;
  const Tensor root = call.tensor(2);
  const CallName name = call_name(call, 3);
  const bool is_after = static_cast<Hook::Kind>(call.args[1].integer) == Hook::Kind::kAfter;
  const HookSizes sizes = is_after ? hook_after(stop, root, name, call.args[6].ints(), list_of(call.args[7]))
                                   : hook_before(stop, root, name);
  const int64_t count = 2;
  call.outputs.assign(1, empty({&count, 1}, DType::kInt64, Device{}));
  auto* numbers = call.outputs[0].data_as<int64_t>();
  numbers[0] = sizes.inputs;
  numbers[1] = sizes.outputs;
}

void saved_release(Call& call) {
  Tape::current().saved().release(call.args[0].integer);
  Tape::current().recomputations().drop(call.args[0].integer);
}

void saved_bytes_watch(Call& call) { Tape::current().saved_bytes().watch(call.args[0].integer, call.tensor(1)); }

void saved_bytes_release(Call& call) { Tape::current().saved_bytes().release(call.args[0].integer); }

void saved_bytes_restore(Call& call) { Tape::current().saved_bytes().restore(call.args[0].integer, call.tensor(1)); }

void saved_bytes_drop(Call& call) { Tape::current().saved_bytes().drop(call.args[0].integer); }

}  // namespace

void register_autograd(Dispatcher& dispatcher) {
  dispatcher.set_fallback(Key::kAutograd, &record);
  const std::pair<uint16_t, Kernel> kernels[] = {
      {op_id::kBackward, &backward},
      {op_id::kSetGrads, &set_grads},
      {op_id::kAccumulateGrads, &accumulate_grads},
      {op_id::kRequiresGrad, &requires_grad},
      {op_id::kMoveLeaf, &move_leaf},
      {op_id::kCustomFunction, &custom_function},
      {op_id::kHook, &hook},
      {op_id::kUnhook, &unhook},
      {op_id::kCountDataWrite, &count_data_write},
      {op_id::kBackwardBegin, &backward_begin},
      {op_id::kBackwardUntil, &backward_until},
      {op_id::kBackwardFeed, &backward_feed},
      {op_id::kBackwardHistory, &with_new_results<&backward_history>},
      {op_id::kBackwardEnd, &backward_end},
      {op_id::kBackwardDrop, &backward_drop},
      {op_id::kSavedBegin, &saved_begin},
      {op_id::kSavedEnd, &with_new_results<&saved_end>},
      {op_id::kSavedValues, &with_new_results<&saved_values>},
      {op_id::kSavedRelease, &saved_release},
      {op_id::kSavedStop, &saved_stop},
      {op_id::kSavedBytesWatch, &saved_bytes_watch},
      {op_id::kSavedBytesRelease, &saved_bytes_release},
      {op_id::kSavedBytesRestore, &saved_bytes_restore},
      {op_id::kSavedBytesDrop, &saved_bytes_drop},
      {op_id::kGraphIsFreed, &with_new_results<&graph_is_freed>},
      {op_id::kGraphDescribe, &with_new_results<&graph_describe>},
      {op_id::kGraphSaved, &with_new_results<&graph_saved>},
      {op_id::kGraphHook, &with_new_results<&graph_hook>},
  };
  for (auto [op, kernel] : kernels) dispatcher.set(op, Key::kAutograd, kernel);
}

}  // namespace tt::autograd
