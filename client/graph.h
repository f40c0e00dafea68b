// The shadow of the engine's tape: what a client must know of it without asking: which leaves a
// backward pass reaches, and where the client's own code takes part in it.
//
// The same calls are recorded here as in autograd/record.cc, by the same rules. Counted references:
// a result owns the node that made it, a node those before it; leaves are not kept alive. Belongs
// to whoever holds the session's tensors: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "client/tensor.h"
#include "engine/schema/op.h"
#include "engine/schema/recycled.h"

namespace tt::client {

// The client's code inside a backward pass. Of a function: gradients of its results in, one for
// each input out (null: none). Of a hook: one in, its replacement or null out. `create_graph`:
// what it issues is to be recorded.
using BackwardFunction = std::function<std::vector<Tensor>(std::vector<Tensor> gradients, bool create_graph)>;

struct GraphEdge {
  Ref<GraphNode> node;  // null: nobody wants this gradient
  uint32_t output = 0;
};

struct GraphHook {
  int64_t stop;
  uint32_t output;
  BackwardFunction function;
  TensorMeta meta;  // of the gradient
};

// What few nodes have.
struct GraphExtras {
  int64_t stop = 0;  // of a function of the client's
  BackwardFunction function;
  std::vector<TensorMeta> outputs;
  std::vector<GraphHook> hooks;
  std::vector<Handle*> retained;  // results whose gradients are wanted
};

class GraphNode final : public RefCounted, public Recycled<GraphNode> {
 public:
  GraphNode(const Op* op, Handle* leaf);
  ~GraphNode() override;

  const Op* op() const { return op_; }  // null: a leaf, or a function of the client's
  uint64_t sequence() const { return sequence_; }
  bool is_leaf() const { return is_leaf_; }
  Handle* leaf() const { return leaf_; }  // null once it is gone
  void forget_leaf() { leaf_ = nullptr; }
  void move_leaf(Handle* leaf) { leaf_ = leaf; }  // `leaf` owns this from now on
  GraphExtras& extras();
  const GraphExtras* find_extras() const { return extras_.get(); }

  absl::InlinedVector<GraphEdge, 2> edges;
  bool freed = false;  // a pass has used up what it saved
  uint64_t visit = 0;  // the pass that was here last
  uint32_t visit_index = 0;

 private:
  const Op* op_;
  Handle* leaf_;
  bool is_leaf_;
  uint64_t sequence_;
  std::unique_ptr<GraphExtras> extras_;
};

// Gives the results their place in the graph; `into`: they existed before and were written to.
// Called by Session::call where gradients are on.
void record(const Op& op, Args args, absl::Span<const Tensor> results, bool into);
// Throws Error where a recorded write into `target` is not allowed: it views a leaf.
void check_writable(const Handle& target);
// Where a gradient of `tensor` goes. Requires that it requires grad.
GraphEdge edge_of(const Tensor& tensor);

// Makes `tensor` result `output` of `node`: it requires grad from now on.
void give_node(Handle& tensor, Ref<GraphNode> node, uint32_t output);
// The graph forgets a leaf, or a result whose gradient was to be retained. For ~Handle.
void leave_graph(Handle& handle);

}  // namespace tt::client
