#include "client/autograd/backward_pass.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "base/ignoring_errors.h"
#include "client/session/operand.h"
#include "client/session/program_trace.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"

namespace tt::client {
namespace {

int64_t next_number() {
  static std::atomic<int64_t> number{0};
  return ++number;
}

// Stands for an undefined gradient of a stop whose gradients the engine describes.
TensorMeta undefined_gradient() {
  TensorMeta none;
  none.dtype = DType::kBool;
  none.sizes = {0};
  none.strides = {1};
  return none;
}

// The pass that runs client code in this thread, the innermost one.
thread_local BackwardPass* innermost = nullptr;

constexpr const char* kFreedMessage =
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward.";

}  // namespace

BackwardPass::BackwardPass(absl::Span<const Tensor> roots, absl::Span<const Tensor> gradients, BackwardOptions options)
    : options_(options),
      roots_(roots.begin(), roots.end()),
      gradients_(gradients.begin(), gradients.end()),
      id_(static_cast<uint64_t>(next_number())) {
  check(!roots_.empty(), "expected at least one tensor to differentiate, got none");
  check(gradients_.empty() || gradients_.size() == roots_.size(), "expected one gradient per tensor, got ",
        roots_.size(), " tensors and ", gradients_.size(), " gradients");
  gradients_.resize(roots_.size());
  session_ = roots_[0]->session;
  for (size_t i = 0; i < roots_.size(); ++i) {
    roots_[i]->follow_base();
    check(roots_[i]->requires_grad, "element ", i, " of tensors does not require grad and does not have a grad_fn");
    const Tensor& gradient = gradients_[i];
    check(gradient || roots_[i]->numel() == 1, "grad can be implicitly created only for scalar outputs");
    check(gradient || !is_complex(roots_[i]->dtype),
          "grad can be implicitly created only for real scalar outputs but got torch.", name(roots_[i]->dtype));
    check(!gradient || gradient->sizes == roots_[i]->sizes, "Mismatch in shape: grad_output[", i, "] has a shape of ",
          gradient ? to_string(gradient->sizes) : "", " and output[", i, "] has a shape of ",
          to_string(roots_[i]->sizes), ".");
    check(!gradient || is_complex(gradient->dtype) == is_complex(roots_[i]->dtype),
          "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
          "grad_output[",
          i, "] has a dtype of torch.", gradient ? name(gradient->dtype) : "", " and output[", i,
          "] has a dtype of torch.", name(roots_[i]->dtype), ".");
  }
  discover();
}

// ---- Discovery: nodes that the roots reach

void BackwardPass::discover() {
  for (const Tensor& root : roots_) {
    GraphEdge edge = edge_of(root);
    visit(edge.node.get());
    if (options_.create_graph) history_.push_back(std::move(edge));
  }
  std::vector<const GraphNode*> passes;
  visit_edges(0, &passes);
  num_certain_ = static_cast<uint32_t>(nodes_.size());
  has_recorded_passes_ = !passes.empty();
  for (const GraphNode* pass : passes) visit_edges_of(*pass);
  visit_edges(num_certain_, nullptr);
  for (const Tensor& gradient : gradients_) depend_on(gradient);
}

void BackwardPass::depend_on(const Tensor& gradient) {
  if (!options_.create_graph || !gradient || !gradient->requires_grad) return;
  GraphEdge edge = edge_of(gradient);
  // All gradients of a recorded pass have its node.
  const bool is_known =
      !history_.empty() && edge.node && edge.node->is_recorded_pass && history_.back().node == edge.node;
  if (!is_known) history_.push_back(std::move(edge));
}

// Visits what the nodes from `first` on lead to. Adds nodes of recorded passes to `passes` instead, unless it is null.
void BackwardPass::visit_edges(size_t first, std::vector<const GraphNode*>* passes) {
  for (size_t i = first; i < nodes_.size(); ++i) {
    if (passes != nullptr && nodes_[i]->is_recorded_pass) {
      passes->push_back(nodes_[i].get());
    } else {
      visit_edges_of(*nodes_[i]);
    }
  }
}

void BackwardPass::visit_edges_of(const GraphNode& node) {
  for (const GraphEdge& edge : node.edges) {
    if (edge.node) visit(edge.node.get());
  }
}

void BackwardPass::visit(GraphNode* node) {
  if (node->visit == id_) return;
  node->visit = id_;
  node->visit_index = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back(Ref<GraphNode>(node));
}

uint32_t BackwardPass::index_of(const GraphNode* node) const {
  if (index_.empty()) return node->visit == id_ ? node->visit_index : kNone;
  auto found = index_.find(node);
  return found == index_.end() ? kNone : found->second;
}

std::vector<Tensor> BackwardPass::tensors_with_grad() const {
  std::vector<Tensor> tensors;
  for (const Ref<GraphNode>& node : nodes_) {
    if (node->leaf() && node->leaf()->requires_grad) tensors.emplace_back(node->leaf());
    const GraphExtras* extras = node->extras();
    for (Handle* handle : extras ? extras->retained : std::vector<Handle*>()) {
      if (Tensor tensor(handle); reaches(tensor)) tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

bool BackwardPass::reaches(const Tensor& tensor) const {
  if (!tensor->requires_grad) return false;
  GraphEdge target = edge_of(tensor);
  if (index_of(target.node.get()) == kNone) return false;
  if (target.node->is_leaf()) return true;
  for (const Tensor& root : roots_) {
    GraphEdge edge = edge_of(root);
    if (edge.node == target.node && edge.output == target.output) return true;
  }
  for (const Ref<GraphNode>& node : nodes_) {
    for (const GraphEdge& edge : node->edges) {
      if (edge.node == target.node && edge.output == target.output) return true;
    }
  }
  return false;
}

// A node is older than the nodes that depend on it, so iterating from the oldest node visits every edge's target before
// the node itself.
void BackwardPass::find_needed(absl::Span<const Tensor> captures) {
  if (options_.accumulate && !options_.only_captures) return;
  needed_.assign(nodes_.size(), false);
  for (const Tensor& capture : captures) {
    if (uint32_t index = index_of(edge_of(capture).node.get()); index != kNone) needed_[index] = true;
  }
  runs_.assign(nodes_.size(), options_.accumulate);
  std::vector<uint32_t> order = indices_latest_first();
  for (auto i = order.rbegin(); i != order.rend(); ++i) {
    for (const GraphEdge& edge : nodes_[*i]->edges) {
      if (edge.node && needed_[index_of(edge.node.get())]) needed_[*i] = runs_[*i] = true;
    }
  }
}

std::vector<uint32_t> BackwardPass::indices_latest_first() const {
  std::vector<uint32_t> order(nodes_.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [this](uint32_t a, uint32_t b) { return nodes_[a]->sequence() > nodes_[b]->sequence(); });
  return order;
}

bool BackwardPass::has_client_code() const {
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const GraphExtras* extras = nodes_[i]->extras();
    if (extras && is_needed(i) && (extras->stop != 0 || !extras->hooks.empty() || !extras->packed.empty())) {
      return true;
    }
  }
  return false;
}

// Whether a pass of a Program would run client-side code that the Program cannot contain: all but the hooks of leaves,
// which are called with the gradients that the pass returns.
bool BackwardPass::has_untraceable_code() const {
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const GraphExtras* extras = nodes_[i]->extras();
    if (!extras || !is_needed(i)) continue;
    const bool has_other_hooks = absl::c_any_of(
        extras->hooks, [&](const GraphHook& hook) { return !nodes_[i]->is_leaf() || hook.kind != HookKind::kTensor; });
    if (extras->stop != 0 || !extras->packed.empty() || has_other_hooks) return true;
  }
  return false;
}

// Throws Error if the pass is part of a Program and runs anything that the Program does not contain.
void BackwardPass::check_traced() const {
  const ProgramTrace* trace = ProgramTrace::of(*session_);
  if (trace == nullptr) [[likely]]
    return;
  check(ErrorKind::kNotImplemented, !has_untraceable_code(),
        "[backward] a Program cannot contain a pass with hooks of results, functions of autograd.Function or "
        "saved_tensors_hooks, which run in the client at every pass");
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    check(ErrorKind::kNotImplemented, nodes_[i]->is_leaf() || !runs(i) || trace->has_recorded(*nodes_[i]),
          "[backward] a pass of a Program cannot continue through tensors that were computed before; detach them, or "
          "compute them in the traced function");
  }
}

// Throws Error if the pass needs saved tensors that an earlier pass has freed. Waits for the engine if only the engine
// has this information.
void BackwardPass::check_not_freed(absl::Span<const Tensor> captures) {
  bool is_known = true;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i]->freed == GraphNode::Freed::kNo || !runs(i)) continue;
    check(nodes_[i]->freed != GraphNode::Freed::kYes, kFreedMessage);
    is_known = false;
  }
  if (is_known) [[likely]]
    return;
  const ListArg roots(roots_), gradients(gradients_), targets(captures);
  const Arg args[] = {roots.arg(), gradients.arg(), targets.arg(), options_.accumulate};
  CallOptions options;
  options.grad = false;
  options.site = options_.site;
  const Tensor freed = session_->call(*find_op(op_id::kGraphIsFreed), args, options)[0];
  check(session_->read(freed, options_.site).bytes[0] == 0, kFreedMessage);
}

void BackwardPass::mark_freed() {
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    GraphNode& node = *nodes_[i];
    if (!node.op() || !runs(i)) continue;
    const bool packed = node.extras() && !node.extras()->packed.empty();
    if (packed) node.mutable_extras().packed.clear();
    if (packed || node.saves_tensors()) {
      node.freed = GraphNode::Freed::kYes;
    } else if (node.op()->is_composite && node.first != 0) {
      node.freed = GraphNode::Freed::kMaybe;
    }
  }
}

// ---- Instructions to the engine

std::vector<Tensor> BackwardPass::run(absl::Span<const Tensor> captures) {
  find_needed(captures);
  check_traced();
  check_not_freed(captures);
  if (options_.accumulate && options_.create_graph) {  // the sum depends on the gradient that it is added to
    for (const Tensor& capture : captures) depend_on(capture->grad);
  }
  const bool is_traced = ProgramTrace::of(*session_) != nullptr;
  std::vector<Tensor> results = has_client_code() && !is_traced ? issue_steps(captures) : issue(captures);
  for (size_t i = 0; is_traced && i < captures.size(); ++i) run_hooks_of_leaf(*captures[i], &results[i]);
  if (!options_.retain_graph) mark_freed();
  return results;
}

Tensors BackwardPass::call(uint16_t op, Args args, absl::Span<const TensorMeta> metas) {
  CallOptions options;
  options.grad = options_.create_graph;
  options.site = options_.site;
  return session_->call_with_metas(*find_op(op), args, metas, options);
}

TensorMeta BackwardPass::gradient_meta(const TensorMeta& of) const {
  TensorMeta meta;
  meta.dtype = of.dtype;
  meta.device = of.device;
  meta.sizes = of.sizes;
  meta.strides = contiguous_strides(of.sizes);
  meta.requires_grad = options_.create_graph;
  return meta;
}

std::vector<TensorMeta> BackwardPass::gradient_metas(absl::Span<const Tensor> of) const {
  std::vector<TensorMeta> metas;
  for (const Tensor& t : of) metas.push_back(gradient_meta(*t));
  return metas;
}

void BackwardPass::attach_history(absl::Span<const Tensor> results) {
  if (!options_.create_graph) return;
  auto node = Ref<GraphNode>(new GraphNode(nullptr, nullptr));
  node->edges.assign(history_.begin(), history_.end());
  node->is_recorded_pass = true;
  for (uint32_t i = 0; i < results.size(); ++i) {
    results[i]->node = node;
    results[i]->output = i;
  }
}

std::vector<Tensor> BackwardPass::issue(absl::Span<const Tensor> captures) {
  const ListArg roots(roots_), gradients(gradients_), targets(captures);
  const Arg args[] = {roots.arg(),         gradients.arg(),       targets.arg(),
                      options_.accumulate, options_.retain_graph, options_.create_graph};
  Tensors results = call(op_id::kBackward, args, gradient_metas(captures));
  attach_history(results);
  return {results.begin(), results.end()};
}

// Calls the hooks of a leaf in a traced pass, with the gradient that the pass has returned, which they may replace.
void BackwardPass::run_hooks_of_leaf(const Handle& leaf, Tensor* gradient) const {
  const GraphNode* node = leaf.leaf_node.get();
  if (!leaf.is_leaf() || node == nullptr || node->extras() == nullptr || !*gradient) return;
  const std::vector<GraphHook> hooks = node->extras()->hooks;  // copied, because a hook may add and remove hooks
  for (const GraphHook& hook : hooks) {
    const std::vector<Tensor> replaced = hook.function({*gradient}, options_.create_graph);
    check(replaced.size() == 1, "expected a hook to return one gradient or none, got ", replaced.size());
    if (!replaced[0]) continue;
    check(replaced[0]->sizes == (*gradient)->sizes && replaced[0]->dtype == (*gradient)->dtype,
          "expected a hook to return a gradient ", describe(**gradient), ", got ", describe(*replaced[0]));
    *gradient = replaced[0];
  }
}

// ---- A pass with client-side functions or hooks, issued in steps

std::vector<Tensor> BackwardPass::issue_steps(absl::Span<const Tensor> captures) {
  for (uint32_t i = 0; i < nodes_.size(); ++i) index_.emplace(nodes_[i].get(), i);
  reached_.assign(nodes_.size(), false);
  for (const Tensor& root : roots_) record_arrival(edge_of(root));
  begin(captures);
  BackwardPass* const outer = std::exchange(innermost, this);
  const auto drop = [this, outer] {
    innermost = outer;
    const Arg args[] = {task_};
    call(op_id::kBackwardDrop, args, {});
  };
  absl::Cleanup give_up = [&drop] { ignoring_errors(drop); };
  for (uint32_t i : indices_latest_first()) {
    if (is_needed(i)) visit_node(*nodes_[i]);
  }
  std::vector<Tensor> results = end(captures);
  std::move(give_up).Cancel();
  drop();
  return results;
}

void BackwardPass::begin(absl::Span<const Tensor> captures) {
  task_ = next_number();
  const ListArg roots(roots_), gradients(gradients_), targets(captures);
  const Arg args[] = {task_,
                      roots.arg(),
                      gradients.arg(),
                      targets.arg(),
                      options_.accumulate,
                      options_.retain_graph,
                      options_.create_graph};
  TensorMeta progress;
  progress.dtype = DType::kBool;
  progress.sizes = progress.strides = {1};
  progress_ = call(op_id::kBackwardBegin, args, {&progress, 1})[0];
}

void BackwardPass::visit_node(GraphNode& node) {
  const GraphExtras* extras = node.extras();
  // Copied, because client code may add and remove hooks of this node.
  std::vector<GraphHook> hooks = extras ? extras->hooks : std::vector<GraphHook>();
  const uint32_t index = index_of(&node);
  for (const GraphHook& hook : hooks) {
    if (hook.kind == HookKind::kTensor && arrived_.contains({&node, hook.output})) run_hook(hook, is_certain(index));
  }
  if (!runs(index)) return;
  // A function runs also if none of its gradients arrived, because a later function returned none.
  if (extras && extras->stop != 0) return run_function(node, is_certain(index), *extras, hooks);
  if (!reached_[index]) return;
  for (const GraphHook& hook : hooks) {
    if (hook.kind == HookKind::kBefore) run_node_hook(hook);
  }
  if (extras && !extras->packed.empty()) supply_saved(node);
  std::vector<Tensor> replaced;  // of the last hook of kAfter: one per edge with a node
  bool is_replaced = false;
  for (const GraphHook& hook : hooks) {
    if (hook.kind != HookKind::kAfter) continue;
    std::vector<Tensor> passed = run_node_hook(hook);
    if (!hook.function) continue;
    replaced = std::move(passed);
    is_replaced = true;
  }
  size_t number = 0;
  for (const GraphEdge& edge : node.edges) {
    if (!edge.node) continue;
    if (!is_replaced || replaced[number] || has_recorded_passes_) record_arrival(edge);
    ++number;
  }
}

void BackwardPass::record_arrival(const GraphEdge& edge) {
  uint32_t index = edge.node ? index_of(edge.node.get()) : kNone;
  if (index == kNone) return;
  arrived_.emplace(edge.node.get(), edge.output);
  reached_[index] = true;
}

// Waits for the engine unless `is_certain`: the hook is not called if there is no gradient.
void BackwardPass::run_hook(const GraphHook& hook, bool is_certain) {
  const TensorMeta meta = is_certain ? hook.meta : undefined_gradient();
  Tensors found = run_until(hook.stop, {&meta, 1});
  std::vector<Tensor> gradient(found.begin(), found.end());
  if (!is_certain && !find_defined(found, gradient)) return pass_gradients(hook.stop, gradient);
  std::vector<Tensor> replaced = hook.function(gradient, options_.create_graph);
  check(replaced.size() == 1, "expected a hook to return one gradient or none, got ", replaced.size());
  const Tensor& result = replaced[0] ? replaced[0] : gradient[0];
  pass_gradients(hook.stop, {&result, 1});
}

std::shared_ptr<void> BackwardPass::recompute(Recomputation& function, bool in_pass) {
  if (in_pass && innermost != nullptr) return innermost->recompute_for(function, /*is_reached=*/false);
  absl::Cleanup release = [&] { ignoring_errors([&] { function.release(); }); };
  std::shared_ptr<void> kept = function.run_again();
  function.release();
  std::move(release).Cancel();
  function.end_run();
  return kept;
}

// Runs the function again, unless it was done for this pass, and passes what its calls have saved to the engine's pass.
// If `is_reached`, the pass runs until it needs it.
std::shared_ptr<void> BackwardPass::recompute_for(Recomputation& function, bool is_reached) {
  if (auto done = recomputed_.find(function.shared_from_this()); done != recomputed_.end()) return done->second;
  std::vector<Tensor> tensors;
  TensorMeta flag;
  flag.dtype = DType::kBool;
  if (is_reached) tensors.push_back(run_until(function.stop(), {&flag, 1})[0]);
  absl::Cleanup release = [&] { ignoring_errors([&] { function.release(); }); };
  std::shared_ptr<void> kept = function.run_again();
  const absl::Cleanup end = [&] { function.end_run(); };
  recomputed_.emplace(function.shared_from_this(), kept);
  if (function.num_calls() == 0) return kept;
  if (Tensor last = function.take_last_result()) tensors.push_back(std::move(last));
  pass_tensors(function.stop(), tensors);
  std::move(release).Cancel();
  return kept;
}

// Supplies the tensors that the client stores for a call's nodes in the engine, the latest node first.
void BackwardPass::supply_saved(const GraphNode& node) {
  TensorMeta flag;
  flag.dtype = DType::kBool;
  const std::vector<PackedNode> packed = node.extras()->packed;  // copied, because client code may change the graph
  for (auto i = packed.rbegin(); i != packed.rend(); ++i) {
    if (Recomputation* const function = i->hooks->recomputation()) {
      recompute_for(*function, /*is_reached=*/true);
      continue;
    }
    // The flag is passed on, so that an error before this stop is the error of the pass.
    std::vector<Tensor> tensors = {run_until(i->stop, {&flag, 1})[0]};
    for (Tensor& tensor : i->unpack(options_.create_graph)) tensors.push_back(std::move(tensor));
    pass_tensors(i->stop, tensors);
  }
}

// Waits for the engine's description of `found`, and sets `gradients` to those that are defined and null pointers.
// Returns whether any is.
bool BackwardPass::find_defined(Tensors& found, std::vector<Tensor>& gradients) {
  session_->describe(found, options_.site);
  gradients.clear();
  bool reached = false;
  for (const Tensor& gradient : found) {
    gradients.push_back(gradient->dtype == DType::kBool ? Tensor() : gradient);
    reached |= !!gradients.back();
  }
  return reached;
}

// Returns the gradients that the hook has passed on. Waits for the engine, because only it knows which gradients are
// defined, and their sizes. A removed hook passes all on without waiting.
std::vector<Tensor> BackwardPass::run_node_hook(const GraphHook& hook) {
  const std::vector<TensorMeta> metas(hook.inputs + hook.outputs, undefined_gradient());
  Tensors found = run_until(hook.stop, metas);
  const size_t count = hook.kind == HookKind::kAfter ? hook.inputs : hook.outputs;
  if (!hook.function) {
    pass_tensors(hook.stop, absl::MakeConstSpan(found).first(count));
    return {};
  }
  std::vector<Tensor> gradients;
  const bool reached = find_defined(found, gradients);
  std::vector<Tensor> replaced(count);
  if (reached) replaced = hook.function(gradients, options_.create_graph);
  check(replaced.size() == count, "expected a hook to return ", count, " gradients, got ", replaced.size());
  pass_gradients(hook.stop, replaced);
  return replaced;
}

Tensor BackwardPass::history_in_pass(int64_t stop, int64_t place, const Tensor& tensor) {
  BackwardPass* const pass = innermost;
  const bool runs = pass != nullptr && pass->function_ != nullptr && pass->function_->extras()->stop == stop &&
                    tensor->session == pass->session_;
  return runs ? pass->with_history(place, tensor) : tensor;
}

Tensor BackwardPass::with_history(int64_t place, const Tensor& tensor) {
  const auto input = static_cast<size_t>(~place);
  check(place < 0 ? input < function_->edges.size() : static_cast<size_t>(place) < function_->extras()->outputs.size(),
        "expected a result or an input of a function, got ", place);
  GraphEdge edge =
      place < 0 ? function_->edges[input] : GraphEdge{Ref<GraphNode>(function_), static_cast<uint32_t>(place)};
  if (!edge.node) return tensor;
  TensorMeta meta = *tensor;
  meta.requires_grad = true;
  const Arg args[] = {task_, function_->extras()->stop, place, tensor.get()};
  Tensor view = call(op_id::kBackwardHistory, args, {&meta, 1})[0];
  set_view_at(view, *tensor, std::move(edge));
  return view;
}

// Waits for the engine if the function receives undefined gradients, or unless `is_certain`: without gradients the
// function is not called.
void BackwardPass::run_function(GraphNode& node, bool is_certain, const GraphExtras& function,
                                absl::Span<const GraphHook> hooks) {
  const bool waits = function.wants_undefined || !is_certain;
  std::vector<TensorMeta> metas;
  metas.reserve(function.outputs.size());
  for (const TensorMeta& output : function.outputs)
    metas.push_back(waits ? undefined_gradient() : gradient_meta(output));
  Tensors arrived = run_until(function.stop, metas);
  std::vector<Tensor> gradients(arrived.begin(), arrived.end());
  if (waits && !find_defined(arrived, gradients)) {
    for (size_t i = 0; has_recorded_passes_ && i < node.edges.size(); ++i) record_arrival(node.edges[i]);
    return pass_gradients(function.stop, std::vector<Tensor>(node.edges.size()));
  }
  for (size_t i = 0; waits && !function.wants_undefined && i < gradients.size(); ++i) {
    if (gradients[i]) continue;
    TensorMeta zeros = gradient_meta(function.outputs[i]);
    zeros.requires_grad = false;
    const Arg args[] = {SizesView(zeros.sizes), zeros.dtype, zeros.device};
    gradients[i] = call(op_id::kZeros, args, {&zeros, 1})[0];
  }
  for (const GraphHook& hook : hooks) {
    if (hook.kind == HookKind::kBefore && hook.function) gradients = hook.function(gradients, options_.create_graph);
  }
  GraphNode* const outer = std::exchange(function_, &node);
  absl::Cleanup restore = [this, outer] { function_ = outer; };
  std::vector<Tensor> fed = function.function(gradients, options_.create_graph);
  check(fed.size() == node.edges.size(), "a function returned an incorrect number of gradients (expected ",
        node.edges.size(), ", got ", fed.size(), ")");
  for (const GraphHook& hook : hooks) {
    if (hook.kind != HookKind::kAfter || !hook.function) continue;
    std::vector<Tensor> both = fed;
    both.insert(both.end(), gradients.begin(), gradients.end());
    fed = hook.function(std::move(both), options_.create_graph);
  }
  for (size_t i = 0; i < fed.size(); ++i) {
    if (fed[i] || has_recorded_passes_) record_arrival(node.edges[i]);
  }
  pass_gradients(function.stop, fed);
}

Tensors BackwardPass::run_until(int64_t stop, absl::Span<const TensorMeta> metas) {
  std::vector<TensorMeta> gradients;
  absl::InlinedVector<int64_t, 8> shapes;  // used if the engine's pass does not reach this stop
  for (const TensorMeta& meta : metas) {
    gradients.push_back(gradient_meta(meta));
    shapes.push_back(static_cast<int64_t>(meta.dtype));
    shapes.push_back(meta.dim());
    shapes.insert(shapes.end(), meta.sizes.begin(), meta.sizes.end());
  }
  const Arg args[] = {task_, stop, progress_.get(), SizesView(shapes)};
  Tensors results = call(op_id::kBackwardUntil, args, gradients);
  attach_history(results);
  return results;
}

void BackwardPass::pass_gradients(int64_t stop, absl::Span<const Tensor> gradients) {
  for (const Tensor& gradient : gradients) depend_on(gradient);
  pass_tensors(stop, gradients);
}

void BackwardPass::pass_tensors(int64_t stop, absl::Span<const Tensor> tensors) {
  const ListArg fed(tensors);
  const Arg args[] = {task_, stop, fed.arg(), progress_.get()};
  TensorMeta progress = *progress_;
  progress_ = call(op_id::kBackwardFeed, args, {&progress, 1})[0];
}

std::vector<Tensor> BackwardPass::end(absl::Span<const Tensor> captures) {
  std::vector<Tensor> reached;
  for (const Tensor& capture : captures) {
    GraphEdge edge = edge_of(capture);
    if (arrived_.contains({edge.node.get(), edge.output})) reached.push_back(capture);
  }
  const ListArg targets(reached);
  const Arg args[] = {task_, targets.arg(), progress_.get()};
  Tensors gradients = call(op_id::kBackwardEnd, args, gradient_metas(reached));
  attach_history(gradients);
  std::vector<Tensor> results;
  size_t next = 0;
  for (const Tensor& capture : captures) {
    bool got = next < reached.size() && reached[next] == capture;
    results.push_back(got ? gradients[next++] : Tensor());
  }
  return results;
}

}  // namespace tt::client
