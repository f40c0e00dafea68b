#include "autograd/graph_task.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "autograd/anomaly.h"
#include "autograd/formulas/formulas.h"
#include "autograd/nodes/accumulate.h"
#include "autograd/nodes/client_function_node.h"
#include "autograd/nodes/history.h"
#include "autograd/nodes/leaf.h"
#include "autograd/nodes/operator_node.h"
#include "autograd/profiled_node.h"
#include "engine/device/cancellation.h"
#include "engine/dispatch/ops.h"
#include "engine/program/suspension.h"
#include "engine/schema/error.h"

namespace tt::autograd {
namespace {

uint64_t next_id() {
  static std::atomic<uint64_t> id{0};
  return ++id;
}

// Sets the thread's modes for one step: disables inference mode, and enables recording only if `create_graph`. The
// destructor restores the previous modes.
class PassMode {
 public:
  explicit PassMode(bool create_graph) : grad_(create_graph), inference_(Context::current().inference) {
    Context::current().inference = false;
  }
  ~PassMode() { Context::current().inference = inference_; }

 private:
  GradMode grad_;
  bool inference_;
};

bool is_defined(const Tensor& gradient) { return !!gradient; }

bool is_built_in(const Op& op) { return find_op(op.id) == &op; }

}  // namespace

GraphTask::GraphTask(absl::Span<const Tensor> roots, absl::Span<const Tensor> gradients,
                     absl::Span<const Tensor> captures, GraphTaskOptions options)
    : options_(options), id_(next_id()) {
  check(gradients.empty() || gradients.size() == roots.size(), "expected one gradient per root, got ", roots.size(),
        " roots and ", gradients.size(), " gradients");
  PassMode mode(options_.create_graph);
  // Marks the start of a training step: the work of a device between two backward passes usually repeats.
  if (!roots.empty() && roots[0].device().type != DeviceType::kMeta) {
    Context::current().stream(roots[0].device()).mark();
  }
  capture_all_ = options_.accumulate && captures.empty();
  for (size_t i = 0; i < roots.size(); ++i) check_root(roots[i], gradients.empty() ? Tensor() : gradients[i]);
  for (const Tensor& root : roots) {
    // A root that does not require grad is skipped. It is the result of a recorded backward pass, and only the tape can
    // determine that this result is constant. The client has rejected all other roots that do not require grad.
    if (root.requires_grad()) claim(edge_of(root).node.get());
  }
  discover();
  for (const Tensor& capture : captures) add_capture(capture);
  count_dependencies();
  try {
    for (size_t i = 0; i < roots.size(); ++i) start_at(roots[i], gradients.empty() ? Tensor() : gradients[i]);
  } catch (const Error& error) {
    invalidate_gradients(error);
    throw;
  }
}

void GraphTask::check_root(const Tensor& root, const Tensor& gradient) const {
  if (!root.requires_grad()) return;
  if (!gradient) {
    check(root.numel() == 1, "grad can be implicitly created only for scalar outputs, got ", to_string(root.sizes()));
    return;
  }
  check(gradient.sizes() == root.sizes(), "Mismatch in shape: grad_output[0] has a shape of ",
        to_string(gradient.sizes()), " and output[0] has a shape of ", to_string(root.sizes()), ".");
}

void GraphTask::start_at(const Tensor& root, Tensor gradient) {
  if (!root.requires_grad()) return;
  if (!gradient) gradient = ops::ones(root.sizes(), root.dtype(), root.device());
  if (gradient.dtype() != root.dtype()) gradient = formulas::cast(gradient, root.dtype());
  Edge edge = edge_of(root);
  accumulate(states_[find(edge.node.get())].gradients[edge.output], std::move(gradient), /*in_place=*/false,
             deferred_.get());
}

uint32_t GraphTask::claim(Node* node) {
  uint32_t found = find(node);
  if (found != kNone) return found;
  auto index = static_cast<uint32_t>(states_.size());
  // Passes may be nested. A node that an outer pass has marked keeps the outer pass's mark.
  if (node->task == 0 || Tape::current().num_passes() == 0) {
    node->task = id_;
    node->task_index = index;
  } else {
    nested_states_.emplace(node, index);
  }
  State& state = states_.emplace_back();
  state.node = Ref<Node>(node);
  state.gradients.resize(node->outputs());
  return index;
}

uint32_t GraphTask::find(const Node* node) const {
  if (node->task == id_) return node->task_index;
  if (nested_states_.empty()) return kNone;
  auto found = nested_states_.find(node);
  return found == nested_states_.end() ? kNone : found->second;
}

// Creates the states of all nodes that the roots reach. The states of a node's inputs follow the node's own state.
void GraphTask::discover() {
  for (uint32_t i = 0; i < states_.size(); ++i) {
    Node* node = states_[i].node.get();
    for (const Edge& edge : node->edges) {
      if (edge.node) claim(edge.node.get());
    }
  }
}

void GraphTask::add_capture(const Tensor& tensor) {
  Capture capture{kNone, 0, {}};
  if (tensor.requires_grad()) {
    Edge edge = edge_of(tensor);
    capture.state = find(edge.node.get());
    capture.output = edge.output;
    if (capture.state != kNone) states_[capture.state].captured = true;
  }
  captures_.push_back(std::move(capture));
}

// Whether an edge of the node leads to a state with the property.
bool GraphTask::leads_to(bool State::*property, const State& state) const {
  return absl::c_any_of(state.node->edges,
                        [&](const Edge& edge) { return edge.node && states_[find(edge.node.get())].*property; });
}

// Orders the states so that a node follows the nodes of all its edges: first the leaves, which have no edges, then the
// other nodes from the oldest to the latest.
std::vector<uint32_t> GraphTask::oldest_first() const {
  std::vector<uint32_t> order;
  order.reserve(states_.size());
  for (uint32_t i = 0; i < states_.size(); ++i) {
    if (states_[i].node->is_leaf()) order.push_back(i);
  }
  auto nodes = static_cast<std::ptrdiff_t>(order.size());
  for (uint32_t i = static_cast<uint32_t>(states_.size()); i-- > 0;) {
    if (!states_[i].node->is_leaf()) order.push_back(i);
  }
  auto older = [this](uint32_t a, uint32_t b) { return states_[a].node->sequence() < states_[b].node->sequence(); };
  // A chain is already sorted.
  if (!std::is_sorted(order.begin() + nodes, order.end(), older)) std::sort(order.begin() + nodes, order.end(), older);
  return order;
}

void GraphTask::count_dependencies() {
  for (uint32_t i : oldest_first()) {
    State& state = states_[i];
    const Node& node = *state.node;
    const bool runs_client_code = node.client_node_id() != 0 || (node.hooks && !node.hooks->empty());
    state.requested = capture_all_ || state.captured || leads_to(&State::requested, state);
    state.needed = state.requested || (options_.accumulate && runs_client_code) || leads_to(&State::needed, state);
    if (!state.needed) continue;
    state.runs = options_.accumulate;
    for (const Edge& edge : state.node->edges) {
      if (!edge.node) continue;
      State& input = states_[find(edge.node.get())];
      ++input.dependencies;
      state.runs |= input.needed;
    }
  }
  for (uint32_t i = 0; i < states_.size(); ++i) {
    if (states_[i].needed && states_[i].dependencies == 0) make_ready(i);
  }
}

void GraphTask::make_ready(uint32_t index) {
  ready_.push_back(index);
  std::push_heap(ready_.begin(), ready_.end(),
                 [this](uint32_t a, uint32_t b) { return states_[a].node->sequence() < states_[b].node->sequence(); });
}

bool GraphTask::advance(int64_t stop) try {
  PassMode mode(options_.create_graph);
  if (may_defer()) deferred_ = std::make_unique<DeferredCalls>();
  const absl::Cleanup end = [&] {
    failed_ |= deferred_ && deferred_->has_lost();
    deferred_ = nullptr;
  };
  const auto flush = [&] {
    if (deferred_) deferred_->flush();
  };
  while (!ready_.empty()) {
    std::pop_heap(ready_.begin(), ready_.end(),
                  [this](uint32_t a, uint32_t b) { return states_[a].node->sequence() < states_[b].node->sequence(); });
    uint32_t index = ready_.back();
    ready_.pop_back();
    try {
      if (!visit(index, stop)) continue;
      flush();
      return true;
    } catch (const Suspended&) {
      make_ready(index);
      flush();
      throw;
    } catch (const Error&) {
      flush_after_error();
      throw;
    }
  }
  flush();
  return false;
} catch (const Error& error) {
  if (failed_ && !failure_) failure_ = std::make_shared<const Error>(error.kind(), error.message());
  invalidate_gradients(error);
  throw;
}

void GraphTask::flush_after_error() {
  if (!deferred_) return;
  try {
    deferred_->flush();
  } catch (const std::exception&) {  // has_lost()
  }
}

bool GraphTask::may_defer() const {
  const Context& context = Context::current();
  return !options_.create_graph && DeferredCalls::is_enabled() && !context.detect_anomaly &&
         !context.observes_kernels() && context.recorder == nullptr;
}

void GraphTask::check_not_failed() const {
  if (failure_) throw *failure_;
  check(!failed_, "expected a backward pass that has not failed");
}

void GraphTask::invalidate_gradients(const Error& error) {
  if (!options_.accumulate) return;
  const auto reason = std::make_shared<const Error>(error.kind(), error.message());
  for (State& state : states_) {
    if (!state.node->is_leaf() || !(capture_all_ || state.captured)) continue;
    static_cast<LeafNode&>(*state.node).invalidate_gradient(reason);
  }
}

bool GraphTask::visit(uint32_t index, int64_t stop) {
  State& state = states_[index];
  if (int64_t hook = add_pending_hook(index, Hook::Kind::kTensor); hook != 0) return hook == stop;
  store_captured(index);
  if (!state.runs) return false;
  if (int64_t hook = add_pending_hook(index, Hook::Kind::kBefore); hook != 0) return hook == stop;
  int64_t own = state.node->client_node_id();
  const bool is_function = own != 0;  // runs also without gradients, which are zeros to it
  if (own == 0 && state.supplied.empty()) own = state.node->saved_stop();
  if (own != 0) {
    const bool reached = is_function || std::any_of(state.gradients.begin(), state.gradients.end(), is_defined);
    if (reached) {
      client_callbacks_[own] = {index, 0};
      if (!is_function && static_cast<const OperatorNode&>(*state.node).is_recomputed())
        waiting_states_[own].push_back(index);
      return own == stop;
    }
  }
  const int64_t after = run(index);
  return after != 0 && after == stop;
}

// Adds the node's next client hook of this kind to client_callbacks_ and returns the number of the hook's stop. Returns
// 0 if no hook is left.
int64_t GraphTask::add_pending_hook(uint32_t index, Hook::Kind kind) {
  State& state = states_[index];
  if (!state.hooks) {
    if (!state.node->hooks || state.node->hooks->empty()) return 0;
    // A hook may add and remove hooks of its node. As in PyTorch, the changes apply to the next pass.
    auto hooks = std::make_unique<std::vector<Hook>>(*state.node->hooks);
    std::stable_sort(hooks->begin(), hooks->end(), [](const Hook& a, const Hook& b) { return a.kind < b.kind; });
    state.hooks = std::move(hooks);
  }
  while (state.hooks_done < state.hooks->size() && (*state.hooks)[state.hooks_done].kind == kind) {
    const Hook& hook = (*state.hooks)[state.hooks_done++];
    const bool reached = kind == Hook::Kind::kTensor
                             ? is_defined(state.gradients[hook.output])
                             : std::any_of(state.gradients.begin(), state.gradients.end(), is_defined);
    if (!reached) continue;
    client_callbacks_[hook.stop] = {index, hook.output, kind};
    return hook.stop;
  }
  return 0;
}

void GraphTask::store_captured(uint32_t index) {
  State& state = states_[index];
  if (!state.captured || state.captures_stored || (options_.accumulate && state.node->is_leaf())) return;
  state.captures_stored = true;
  for (Capture& capture : captures_) {
    if (capture.state == index) capture.gradient = state.gradients[capture.output];
  }
}

int64_t GraphTask::run(uint32_t index) {
  State& state = states_[index];
  Node& node = *state.node;
  Gradients results(node.edges.size());
  bool reached = std::any_of(state.gradients.begin(), state.gradients.end(), is_defined);
  bool runs = reached && (!node.is_leaf() || (options_.accumulate && (capture_all_ || state.captured)));
  // After add_pending_hook(), a hook of kAfter is the first one that is left.
  const bool is_held = state.hooks && state.hooks_done < state.hooks->size();
  Gradients outputs;
  if (is_held) outputs = state.gradients;
  std::optional<ProfiledNode> evaluation;
  if (runs) {
    evaluation.emplace(Profiler::Event::kEvaluation, node);
    // Leaves store their gradients, and the formulas of custom operators may read data.
    const bool defers = deferred_ && node.is_operator() && is_built_in(static_cast<const OperatorNode&>(node).op());
    if (deferred_ && !defers) deferred_->flush();
    std::optional<DeferredCalls::Use> use;
    if (defers) use.emplace(deferred_.get());
    run_supplied(state, results);
    check_finite(node, results);
  }
  state.gradients.clear();
  state.supplied.clear();
  if (runs && !options_.retain_graph) node.release();
  if (deferred_) deferred_->flush_if_large();
  if (is_held) return hold(index, (*state.hooks)[state.hooks_done].call, std::move(outputs), std::move(results));
  for (size_t i = 0; i < results.size(); ++i) deliver(node.edges[i], std::move(results[i]));
  return 0;
}

void GraphTask::find_recomputed() {
  if (!recomputed_states_.empty()) return;
  for (uint32_t i = 0; i < states_.size(); ++i) {
    const Node& node = *states_[i].node;
    if (!states_[i].runs || node.saved_stop() == 0) continue;
    if (static_cast<const OperatorNode&>(node).is_recomputed()) recomputed_states_[node.saved_stop()].push_back(i);
  }
}

// Supplies the nodes of a function that has run again, and continues at those that wait.
void GraphTask::take_recomputed(int64_t stop) {
  Recomputations::Values values = Tape::current().recomputations().take(stop);
  find_recomputed();
  for (uint32_t i : recomputed_states_[stop]) {
    State& state = states_[i];
    if (state.node->is_released()) continue;
    const auto& node = static_cast<const OperatorNode&>(*state.node);
    auto found = values.find(node.recomputed_at());
    check(
        found != values.end(),
        "[checkpoint] expected the function to compute the same tensors when it runs again in backward, but it has not "
        "saved those of ",
        node.name());
    state.supplied = std::move(found->second);
    values.erase(found);
  }
  unreached_stops_.erase(stop);
  client_callbacks_.erase(stop);
  auto waiting = waiting_states_.extract(stop);
  if (waiting.empty()) return;
  for (uint32_t index : waiting.mapped()) make_ready(index);
}

// Runs the node, with the saved tensors that the client has supplied.
void GraphTask::run_supplied(State& state, Gradients& results) {
  const ProfiledNode profiled(Profiler::Event::kNode, *state.node);
  if (state.supplied.empty()) return state.node->run(state.gradients, results);
  auto& node = static_cast<OperatorNode&>(*state.node);
  absl::Cleanup withdraw = [&] { node.withdraw(); };
  node.supply(state.supplied);
  node.run(state.gradients, results);
}

// In anomaly mode, throws Error if a gradient that the node returns is NaN.
void GraphTask::check_finite(const Node& node, absl::Span<const Tensor> results) const {
  if (!Context::current().detect_anomaly) [[likely]]
    return;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i]) check_not_nan(node, i, results[i]);
  }
}

void GraphTask::deliver(const Edge& edge, Tensor gradient) {
  if (!edge.node) return;
  uint32_t index = find(edge.node.get());
  State& state = states_[index];
  if (!state.needed) return;
  if (gradient) {
    Tensor& sum = state.gradients[edge.output];
    const bool in_place = sum && !options_.create_graph && is_sole_owner(sum) && sum.is_contiguous();
    accumulate(sum, std::move(gradient), in_place, deferred_.get());
  }
  if (--state.dependencies == 0) make_ready(index);
}

namespace {

// The dtype and the sizes of one gradient.
struct Described {
  DType dtype;
  SizesView sizes;
  Tensor zeros() const { return ops::zeros(sizes, dtype, Device{}); }
};

// Parses the `shapes` argument of backward_until.
std::vector<Described> described_by(SizesView shapes) {
  std::vector<Described> result;
  while (!shapes.empty()) {
    check(shapes.size() >= 2 && is_valid(shapes[0]) && shapes[1] >= 0 &&
              shapes[1] <= static_cast<int64_t>(shapes.size()) - 2,
          "expected a dtype, a rank and the sizes of each gradient, got ", shapes);
    const size_t rank = static_cast<size_t>(shapes[1]);
    result.push_back({static_cast<DType>(shapes[0]), shapes.subspan(2, rank)});
    shapes.remove_prefix(2 + rank);
  }
  return result;
}

Tensors zeros_of(SizesView shapes) {
  Tensors result;
  for (const Described& gradient : described_by(shapes)) result.push_back(gradient.zeros());
  return result;
}

}  // namespace

// Copies gradients in another order than the row-major order in which the client knows them.
static Tensors in_row_major_order(Tensors gradients) {
  for (Tensor& gradient : gradients) {
    if (gradient && !gradient.is_contiguous()) gradient = ops::contiguous(gradient);
  }
  return gradients;
}

Tensors GraphTask::run_until(int64_t stop, SizesView shapes) {
  check_not_failed();
  if (!client_callbacks_.contains(stop) && !advance(stop)) {
    check(!shapes.empty(), "the backward pass does not reach function or hook ", stop);
    unreached_stops_.insert(stop);
    return zeros_of(shapes);
  }
  const ClientCallback& pending = client_callbacks_.at(stop);
  State& state = states_[pending.state];
  PassMode mode(options_.create_graph);
  if (pending.kind != Hook::Kind::kTensor) return in_row_major_order(gradients_at(pending));
  if (state.node->saved_stop() == stop) return {ops::zeros({}, DType::kBool, Device{})};
  if (state.node->client_node_id() != stop) return in_row_major_order({state.gradients[pending.output]});
  const std::vector<Described> described = described_by(shapes);
  Tensors gradients;
  for (uint32_t i = 0; i < state.node->outputs(); ++i) {
    const bool undefined = i < described.size() && described[i].dtype == DType::kBool;
    gradients.push_back(state.gradients[i] ? state.gradients[i]
                        : undefined        ? described[i].zeros()
                                           : state.node->zeros(i));
  }
  return in_row_major_order(std::move(gradients));
}

void GraphTask::resume_with(int64_t stop, absl::Span<const Tensor> gradients) {
  check_not_failed();
  if (Tape::current().recomputations().contains(stop)) return take_recomputed(stop);
  if (unreached_stops_.erase(stop) > 0) return;
  auto found = client_callbacks_.find(stop);
  check(found != client_callbacks_.end(), "the backward pass is not waiting for function or hook ", stop);
  const ClientCallback pending = found->second;
  client_callbacks_.erase(found);
  State& state = states_[pending.state];
  PassMode mode(options_.create_graph);
  if (pending.kind == Hook::Kind::kBefore) return resume_before(pending, gradients);
  if (pending.kind == Hook::Kind::kAfter) return resume_after(pending, gradients);
  if (state.node->client_node_id() == stop) {
    const auto& function = static_cast<const ClientFunctionNode&>(*state.node);
    check(gradients.size() == function.edges.size(), "expected a gradient for each of ", function.edges.size(),
          " function inputs, got ", gradients.size(), " gradients");
    state.gradients.clear();
    Gradients fitted;
    for (size_t i = 0; i < gradients.size(); ++i) fitted.push_back(function.fit(i, gradients[i]));
    check_finite(function, fitted);
    for (size_t i = 0; i < fitted.size(); ++i) deliver(function.edges[i], std::move(fitted[i]));
    return;
  }
  if (state.node->saved_stop() == stop) {
    check(!waiting_states_.contains(stop), "[checkpoint] expected the function at stop ", stop, " to run again");
    check(gradients.size() > 1, "expected the saved tensors of ", state.node->name(), ", got none");
    for (const Tensor& tensor : gradients.subspan(1)) {
      state.supplied.push_back({tensor, tensor ? Tape::current().tracked_version(tensor) : 0});
    }
    return make_ready(pending.state);
  }
  check(gradients.size() == 1, "expected one gradient from a hook, got ", gradients.size());
  Tensor& gradient = state.gradients[pending.output];
  if (gradients[0]) {
    check(gradients[0].sizes() == gradient.sizes(), "hook has changed the size of value, got ",
          to_string(gradients[0].sizes()), " for ", to_string(gradient.sizes()));
    gradient = gradients[0];
  }
  make_ready(pending.state);
}

Tensor GraphTask::with_history(int64_t stop, int64_t place, const Tensor& tensor) const {
  if (unreached_stops_.contains(stop)) return detach(tensor);
  auto found = client_callbacks_.find(stop);
  const Node* node = found == client_callbacks_.end() ? nullptr : states_[found->second.state].node.get();
  check(stop != 0 && node != nullptr && node->client_node_id() == stop,
        "the backward pass is not waiting for function ", stop);
  const auto& function = static_cast<const ClientFunctionNode&>(*node);
  const Edge edge = function.history_at(place, tensor);
  Tensor view = detach(tensor);
  if (edge.node) set_history(view, edge.node, edge.output);
  return view;
}

bool GraphTask::needs_freed_tensors() const {
  return std::any_of(states_.begin(), states_.end(),
                     [](const State& state) { return state.runs && state.node->is_released(); });
}

Tensors GraphTask::finish(absl::Span<const Tensor> captures) {
  check_not_failed();
  while (true) {
    advance(0);
    if (client_callbacks_.empty()) break;
    auto [stop, pending] = *client_callbacks_.begin();
    const bool requested = states_[pending.state].requested;
    check(!requested || states_[pending.state].node->client_node_id() != stop,
          "cannot end the backward pass before function ", stop, " has returned its gradients");
    check(!requested || states_[pending.state].node->saved_stop() != stop,
          "cannot end the backward pass before the saved tensors of ", states_[pending.state].node->name(),
          " are supplied");
    PassMode mode(options_.create_graph);
    skip(stop);
  }
  PassMode mode(options_.create_graph);
  Tensors results;
  for (const Tensor& capture : captures) results.push_back(capture_of(capture));
  if (options_.accumulate) {
    for (size_t i = 0; i < captures.size(); ++i) own_retained(captures[i], &results[i]);
  }
  return in_row_major_order(std::move(results));
}

// Copies the gradient that a result of a call retains, unless nothing else refers to its bytes: a write to it changes
// no other gradient.
void GraphTask::own_retained(const Tensor& tensor, Tensor* gradient) {
  if (tensor->is_leaf()) return;
  for (Capture& capture : captures_) {
    if (capture.gradient.same(*gradient)) {
      capture.gradient = Tensor();
      break;
    }
  }
  if (!is_sole_owner(*gradient) && gradient->is_contiguous()) *gradient = ops::clone(*gradient);
}

Tensor GraphTask::capture_of(const Tensor& tensor) const {
  const History* history = find_history(*tensor.get());
  if (options_.accumulate && tensor->is_leaf() && history && history->grad_error) throw *history->grad_error;
  if (options_.accumulate && tensor->is_leaf() && history && history->grad) return history->grad;
  if (tensor.requires_grad()) {
    Edge edge = edge_of(tensor);
    uint32_t state = find(edge.node.get());
    for (const Capture& capture : captures_) {
      if (state != kNone && capture.state == state && capture.output == edge.output && capture.gradient)
        return capture.gradient;
    }
  }
  return ops::zeros(tensor.sizes(), tensor.dtype(), tensor.device());
}

}  // namespace tt::autograd
