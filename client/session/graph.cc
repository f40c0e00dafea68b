#include "client/session/graph.h"

#include <algorithm>
#include <atomic>

#include "engine/schema/error.h"

namespace tt::client {
namespace {

// Destroys a long chain of nodes without recursion. autograd/nodes/node.cc does the same in the engine.
struct DeferredDeleter {
  std::vector<Ref<GraphNode>> nodes;
  bool draining = false;

  void drain() {
    if (draining) return;
    draining = true;
    while (!nodes.empty()) {
      Ref<GraphNode> node = std::move(nodes.back());
      nodes.pop_back();
    }
    draining = false;
  }
};

DeferredDeleter& deferred_deleter() {
  static thread_local DeferredDeleter deleter;
  return deleter;
}

Tensor handle_of(const TensorMeta* t) { return Tensor(const_cast<Handle*>(static_cast<const Handle*>(t))); }

uint64_t sequence_of_base(const Handle& base) { return base.node ? base.node->sequence() : 0; }

Ref<GraphNode> make_node(const Op* op) { return Ref<GraphNode>(new GraphNode(op, nullptr)); }

// Builds the node of one call, with an edge per differentiable argument; null if none of these arguments has a history.
class Recorder {
 public:
  Recorder(const Op& op, absl::Span<const Tensor> targets) : op_(op), targets_(targets) {}

  void add(size_t index, const Param& param, const Arg& arg) {
    const uint32_t bit = uint32_t{1} << index;
    tensors_ |= bit * static_cast<uint32_t>(arg.kind == Arg::Kind::kTensor || arg.kind == Arg::Kind::kTensors);
    if (!param.differentiable) return;
    if (arg.kind == Arg::Kind::kTensor) add(arg.tensor, bit);
    if (arg.kind != Arg::Kind::kTensors) return;
    for (const TensorMeta* t : arg.list()) add(t, bit);
  }
  // Creates the node, with the next sequence number. Call after all edges were added, because edge_of() of a view may
  // create another node. `first` is the id of the call's first result.
  Ref<GraphNode> node(uint64_t first) {
    if (read_.empty()) return {};
    Ref<GraphNode> node = make_node(&op_);
    node->edges = std::move(edges_);
    node->needed = needed_;
    node->tensors = tensors_;
    node->first = first;
    return node;
  }
  bool reads(const Tensor& target) const { return std::find(read_.begin(), read_.end(), target.get()) != read_.end(); }

 private:
  void add(const TensorMeta* t, uint32_t bit) {
    if (!t || t->is_number) return;
    Tensor tensor = t->requires_grad ? handle_of(t) : Tensor();
    // A target without a node did not require grad before this call.
    if (!tensor || (!tensor->node && std::find(targets_.begin(), targets_.end(), tensor) != targets_.end())) {
      edges_.push_back({});
      return;
    }
    needed_ |= bit;
    read_.push_back(tensor.get());
    edges_.push_back(edge_of(tensor));
  }

  const Op& op_;
  absl::Span<const Tensor> targets_;
  absl::InlinedVector<GraphEdge, 2> edges_;
  absl::InlinedVector<const Handle*, 2> read_;
  uint32_t needed_ = 0, tensors_ = 0;
};

Ref<GraphNode> make_write(const Op& op, GraphEdge old, GraphEdge written) {
  Ref<GraphNode> write = make_node(&op);
  if (old.node) write->edges.push_back(std::move(old));
  if (written.node) write->edges.push_back(std::move(written));
  return write;
}

// Updates the history of `target` after a write, by the rules of autograd/record.cc. `node` is the node of the write,
// or null if the write has no gradient.
void rebase(const Op& op, const Tensor& target, const Ref<GraphNode>& node, uint32_t output, bool is_read) {
  if (!has_gradients(target->dtype)) return;
  GraphEdge written{node, output};
  if (const Tensor& base = target->base) {
    GraphEdge old = base->requires_grad ? edge_of(base) : GraphEdge{};
    if (!node && !old.node) return;
    set_grad_node(*base, make_write(op, std::move(old), std::move(written)), 0);
    target->requires_grad = true;
  } else if (node && (!target->node || is_read)) {
    set_grad_node(*target, node, output);
  } else if (target->node) {
    set_grad_node(*target, make_write(op, edge_of(target), std::move(written)), 0);
  }
}

}  // namespace

uint64_t next_sequence() {
  static std::atomic<uint64_t> sequence{0};
  return sequence.fetch_add(1, std::memory_order_relaxed) + 1;
}

GraphNode::GraphNode(const Op* op, Handle* leaf)
    : op_(op), leaf_(leaf), is_leaf_(leaf != nullptr), sequence_(leaf ? 0 : next_sequence()) {}

GraphNode::~GraphNode() {
  for (GraphEdge& edge : edges) {
    if (!edge.node) continue;
    if (edge.node->ref_count() > 1) {  // the last reference may be that of a node which is destroyed here
      edge.node = {};
      continue;
    }
    deferred_deleter().nodes.push_back(std::move(edge.node));
    deferred_deleter().drain();
  }
}

GraphExtras& GraphNode::mutable_extras() {
  if (!extras_) extras_ = std::make_unique<GraphExtras>();
  return *extras_;
}

bool GraphNode::saves_tensors() const {
  if (!op_) return false;
  return std::any_of(op_->saved.begin(), op_->saved.end(), [this](const SavedPart& part) {
    return (part.params & needed) != 0 && ((part.args & tensors) != 0 || part.results != 0);
  });
}

void set_grad_node(Handle& tensor, Ref<GraphNode> node, uint32_t output) {
  tensor.requires_grad = true;
  if (tensor.retains_grad && tensor.node) {
    std::erase(tensor.node->mutable_extras().retained, &tensor);
    node->mutable_extras().retained.push_back(&tensor);
  }
  tensor.node = std::move(node);
  tensor.output = output;
  if (tensor.base) tensor.base_sequence = sequence_of_base(*tensor.base);
}

void set_view_at(const Tensor& view, Handle& tensor, GraphEdge edge) {
  view->viewed_storage = tensor.storage_number();
  view->viewed_storage_bytes = tensor.storage_bytes();
  view->share_version(tensor);
  set_grad_node(*view, std::move(edge.node), edge.output);
}

namespace {

[[noreturn]] void refuse_function_view(std::string_view what) {
  fail(ErrorKind::kRuntime, "Output of a custom Function is a view and ", what,
       " modified inplace. This view was created inside a custom Function (or because an input was returned as-is) and "
       "the autograd logic to handle view+inplace would override the custom backward associated with the custom "
       "Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output "
       "of the custom Function.");
}

}  // namespace

GraphEdge edge_of(const Tensor& tensor) {
  Handle& handle = *tensor;
  if (handle.is_function_view && handle.version() != handle.function_view_version) [[unlikely]]
    refuse_function_view("its base or another view of its base has been");
  if (handle.base && handle.base->requires_grad) {
    uint64_t sequence = sequence_of_base(*handle.base);
    if (!handle.node || handle.base_sequence != sequence) {
      GraphEdge base = edge_of(handle.base);
      Ref<GraphNode> view = make_node(nullptr);
      view->edges.push_back(std::move(base));
      set_grad_node(handle, std::move(view), 0);
    }
  }
  if (handle.node) return {handle.node, handle.output};
  if (!handle.leaf_node) handle.leaf_node = Ref<GraphNode>(new GraphNode(nullptr, &handle));
  return {handle.leaf_node, 0};
}

int64_t next_stop(int64_t count) {
  static std::atomic<int64_t> last{0};
  return last.fetch_add(count, std::memory_order_relaxed) + 1;
}

void check_writable(const Handle& target) {
  if (target.is_function_view) [[unlikely]]
    refuse_function_view("is being");
  if (!target.base || !target.base->requires_grad) return;
  // A write through it would make the base's elements constant, whose values depend on what the base was computed from.
  check(target.requires_grad || target.follows_base || !has_gradients(target.dtype),
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use "
        "case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and "
        "the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or both "
        "outside (if you want the inplace to be tracked).");
  if (!target.base->is_leaf()) return;
  fail(ErrorKind::kRuntime, "a view of a leaf Variable that requires grad is being used in an in-place operation.");
}

namespace {

// What the function of a transform may write to.
struct OwnTensors {
  const Session* session;
  uint64_t first;                   // id of the oldest one
  std::vector<uint64_t> arguments;  // ids of older ones
};

// The id of the tensor whose elements a write to the handle changes.
uint64_t id_of_base(const Handle& handle) { return handle.base ? handle.base->id : handle.id; }

thread_local std::vector<OwnTensors> own_tensors;  // innermost last

}  // namespace

void push_own_tensors(const Tensor& first, absl::Span<const Tensor> arguments) {
  OwnTensors& own = own_tensors.emplace_back(OwnTensors{first->session.get(), first->id, {}});
  for (const Tensor& argument : arguments) own.arguments.push_back(id_of_base(*argument));
}

void pop_own_tensors() {
  check(!own_tensors.empty(), "pop_own_tensors() without push_own_tensors()");
  own_tensors.pop_back();
}

void check_own(const Handle& target) {
  if (own_tensors.empty()) [[likely]]
    return;
  const OwnTensors& own = own_tensors.back();
  const uint64_t id = id_of_base(target);
  if (id >= own.first || target.session.get() != own.session) return;
  check(
      std::find(own.arguments.begin(), own.arguments.end(), id) != own.arguments.end(),
      "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation that "
      "would mutate a captured Tensor. This is not supported; please rewrite the function being transformed to "
      "explicitly accept the mutated Tensor(s) as inputs.");
}

Ref<GraphNode> record(const Op& op, Args args, absl::Span<const Tensor> results, bool into) {
  bool must_record = into;
  for (const Tensor& result : results) must_record |= result->requires_grad;
  if (!must_record) return {};
  Recorder recorder(op, into ? results : absl::Span<const Tensor>());
  for (size_t i = 0; i < args.size(); ++i) recorder.add(i, op.params[i], args[i]);
  Ref<GraphNode> node = recorder.node(results[0]->id);
  for (uint32_t i = 0; i < results.size(); ++i) {
    if (into)
      rebase(op, results[i], node, i, recorder.reads(results[i]));
    else if (node && results[i]->requires_grad)
      set_grad_node(*results[i], node, i);
  }
  return node;
}

void remove_from_graph(Handle& handle) {
  if (handle.leaf_node) handle.leaf_node->clear_leaf();
  if (handle.retains_grad && handle.node && handle.node->extras()) {
    std::erase(handle.node->mutable_extras().retained, &handle);
  }
}

std::vector<int64_t> hooks_of(const Handle& tensor) {
  const GraphNode* node = tensor.node ? tensor.node.get() : tensor.leaf_node.get();
  std::vector<int64_t> numbers;
  if (node != nullptr && node->extras() != nullptr) {
    for (const GraphHook& hook : node->extras()->hooks) numbers.push_back(hook.stop);
  }
  return numbers;
}

}  // namespace tt::client
