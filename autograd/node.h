// Node: one recorded operation on the tape, as backward sees it: gradients of its results in,
// gradients of its arguments out.
//
// Counted references: a tensor owns the node that made it, a node the nodes that made its
// arguments. Nodes belong to one session's thread. Dropping the end of a chain of any length uses
// constant stack.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/schema/ref.h"
#include "engine/tensor/tensor.h"

namespace tt::autograd {

class Node;
class TapeMeter;

// Where an argument's gradient goes: as the gradient of result `output` of `node`.
struct Edge {
  Ref<Node> node;  // null: nobody wants it
  uint32_t output = 0;
  DType dtype = DType::kFloat32;  // of the argument, and so of its gradient
};

// A place where the client's own code sees, and may replace, the gradient of a result.
struct Hook {
  int64_t stop;
  uint32_t output;
};

using Gradients = absl::InlinedVector<Tensor, 2>;  // undefined entries: none

class Node : public RefCounted {
 public:
  explicit Node(uint32_t outputs) : outputs_(outputs) {}
  ~Node() override;

  // "MulBackward".
  virtual std::string name() const = 0;
  // One entry in `results` for each edge. `gradients` has one entry for each output, some defined;
  // they are the node's to use up. Throws Error.
  virtual void run(Gradients& gradients, Gradients& results) = 0;
  // Forgets what was saved for run(), which then fails if it needs that.
  virtual void release() {}
  virtual bool is_leaf() const { return false; }
  // The client's number where it computes this node itself, else 0.
  virtual int64_t stop() const { return 0; }
  // What the gradient of `output` looks like, where some result's is missing but asked for.
  virtual Tensor zeros(uint32_t output) const = 0;

  // Later nodes have larger ones than those they depend on; leaves the largest of all.
  uint64_t sequence() const { return sequence_; }
  uint32_t site() const { return site_; }  // the user's line that the operation ran for
  uint32_t outputs() const { return outputs_; }

  // Numbers the node, and notes the line it is for. To be called once its edges are there: asking a
  // view for its node may make one.
  void enter_tape();
  // Adds to `hooks`, and to what the tape counts.
  void add_hook(Hook hook);

  absl::InlinedVector<Edge, 2> edges;
  std::unique_ptr<std::vector<Hook>> hooks;
  // Written by the Task that is at this node (backward.h).
  uint64_t task = 0;
  uint32_t task_index = 0;

 protected:
  // What the node takes of host memory beside its saved tensors' bytes, about. After enter_tape().
  void set_host_bytes(size_t bytes);

  uint64_t sequence_ = 0;

 private:
  TapeMeter* meter_ = nullptr;  // from enter_tape() on
  size_t host_bytes_ = 0;
  uint32_t site_ = 0;
  uint32_t outputs_;
};

}  // namespace tt::autograd
