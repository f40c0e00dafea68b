// Client-side copy of the engine's autograd graph. Determines, without a request to the engine, which leaves a backward
// pass reaches, and where client-side functions and hooks run.
//
// Records the same calls as autograd/record.cc, by the same rules. Reference counted: a result owns its node, and a
// node owns its predecessors. The node of a leaf does not own the leaf. Used by one thread at a time, the thread that
// uses the session's tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "client/session/saved_tensors.h"
#include "client/session/tensor.h"
#include "engine/schema/op.h"
#include "engine/schema/thread_cached.h"

namespace tt::client {

// Client code in a backward pass. A function receives gradients of its results and returns one per input (null if that
// input has none). A hook receives one gradient and returns its replacement or null. `create_graph` is true if
// operations that the code issues are recorded.
using BackwardFunction = std::function<std::vector<Tensor>(std::vector<Tensor> gradients, bool create_graph)>;

struct GraphEdge {
  Ref<GraphNode> node;  // null if this gradient is not needed
  uint32_t output = 0;
};

// Hooks of a tensor run first, then those of kBefore, which read the gradients of all results of the node. Hooks of
// kAfter read the gradients of the node's inputs and results, after the node has run.
enum class HookKind : uint8_t { kTensor = 0, kBefore = 1, kAfter = 2 };  // numbers of graph_hook

struct GraphHook {
  int64_t stop;
  uint32_t output;            // of kTensor
  BackwardFunction function;  // null: a removed hook of kBefore or kAfter, where the engine still stops
  TensorMeta meta;            // of kTensor: metadata of the gradient
  HookKind kind = HookKind::kTensor;
  uint32_t inputs = 0;   // of kAfter: the number of gradients of inputs
  uint32_t outputs = 0;  // of kBefore and kAfter: the number of gradients of results
};

// Rarely used members of a node.
struct GraphExtras {
  std::string name;                  // of the client-side function
  std::shared_ptr<void> attributes;  // of a user of the client
  int64_t stop = 0;                  // identifies the client-side function in a pass; 0: none
  BackwardFunction function;
  bool wants_undefined = false;  // the function receives a null for an undefined gradient, instead of zeros
  std::vector<TensorMeta> outputs;
  std::vector<GraphHook> hooks;
  std::vector<Handle*> retained;   // results that retain their gradients
  std::vector<PackedNode> packed;  // saved tensors that the client stores, by node of the engine, the oldest first
};

class GraphNode final : public RefCounted, public ThreadCached<GraphNode> {
 public:
  GraphNode(const Op* op, Handle* leaf);
  ~GraphNode() override;

  const Op* op() const { return op_; }  // null for a leaf or a client-side function
  uint64_t sequence() const { return sequence_; }
  bool is_leaf() const { return is_leaf_; }
  Handle* leaf() const { return leaf_; }  // null once the leaf is destroyed
  void clear_leaf() { leaf_ = nullptr; }
  void move_leaf(Handle* leaf) { leaf_ = leaf; }               // makes `leaf` the leaf of this node
  const GraphExtras* extras() const { return extras_.get(); }  // null if there are none
  GraphExtras& mutable_extras();                               // creates them if there are none

  // Whether the engine's node of the call saves tensors; false for a composite operator.
  bool saves_tensors() const;

  absl::InlinedVector<GraphEdge, 2> edges;  // of a call: one per tensor of a differentiable argument
  enum class Freed : uint8_t {
    kNo,
    kYes,    // a pass has freed its saved tensors
    kMaybe,  // a pass has freed what the engine's nodes of this composite operator have saved, if anything
  };
  Freed freed = Freed::kNo;
  bool is_recorded_pass = false;  // of a pass with create_graph: the engine knows on which edges its results depend
  uint32_t needed = 0;            // of a call, a bit mask: the parameters that need a gradient
  uint32_t tensors = 0;           // of a call, a bit mask: the parameters for which tensors were passed
  uint64_t first = 0;  // of a call: the id of its first result, by which the engine's nodes of the call are found
  uint64_t visit = 0;  // last pass that visited this node
  uint32_t visit_index = 0;

 private:
  const Op* op_;
  Handle* leaf_;
  bool is_leaf_;
  uint64_t sequence_;
  std::unique_ptr<GraphExtras> extras_;
};

// Returns the next number of GraphNode::sequence(), and counts it as used. Nodes of all threads share the numbers.
uint64_t next_sequence();

// Records a call and its results. `into` means that the results are existing tensors, which the call wrote to.
// Session::call() calls this function if gradients are enabled. Returns the call's node, or null.
Ref<GraphNode> record(const Op& op, Args args, absl::Span<const Tensor> results, bool into);
// Throws Error if a recorded write into `target` is not allowed because `target` is a view of a leaf that requires
// grad.
void check_writable(const Handle& target);
// Until pop_own_tensors(), recorded writes of this thread to older tensors of the session than `first` fail, except to
// `arguments`: a transform differentiates a function, and these would keep a part of its graph. Calls may be nested.
void push_own_tensors(const Tensor& first, absl::Span<const Tensor> arguments);
void pop_own_tensors();
// Throws Error if a recorded write into `target` is not allowed because a transform's function has captured it.
void check_own(const Handle& target);
// Returns the edge that receives `tensor`'s gradient. Requires that `tensor` requires grad.
GraphEdge edge_of(const Tensor& tensor);

// Returns the first of `count` unused numbers of stops of a backward pass.
int64_t next_stop(int64_t count);

// Makes `tensor` the result of `node` with index `output`. The tensor then requires grad.
void set_grad_node(Handle& tensor, Ref<GraphNode> node, uint32_t output);
// Makes `view` a view of `tensor`'s storage whose gradient the edge receives, whatever is written to `tensor` later.
void set_view_at(const Tensor& view, Handle& tensor, GraphEdge edge);
// Removes a leaf, or a result that retains its gradient, from the graph. Called by ~Handle.
void remove_from_graph(Handle& handle);

// The numbers of the hooks of a tensor's node, in order.
std::vector<int64_t> hooks_of(const Handle& tensor);

}  // namespace tt::client
