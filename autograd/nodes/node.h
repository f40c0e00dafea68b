// Node: one recorded operation on the tape. Maps the gradients of the results to the gradients of the arguments.
//
// References are counted: a tensor owns the node that computed it, and a node owns the nodes that computed its
// arguments. Only the session's thread uses the nodes. Destroying a chain of any length uses constant stack.
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

// Destination of an argument's gradient: the gradient of result `output` of `node`.
struct Edge {
  Ref<Node> node;  // null if the gradient is not needed
  uint32_t output = 0;
  DType dtype = DType::kFloat32;  // dtype of the argument and of its gradient
};

struct HookedCall;  // autograd/nodes/hooked_call.h

// A point in the pass where the client's code reads, and may replace, gradients.
struct Hook {
  enum class Kind : uint8_t {
    kTensor,  // the gradient of result `output`
    kBefore,  // the gradients of all results, after the hooks of kTensor
    kAfter,   // the gradients that `call` computes, after its nodes have run
  };
  int64_t stop = 0;  // of kTensor and kBefore
  uint32_t output = 0;
  Kind kind = Kind::kTensor;
  std::shared_ptr<HookedCall> call = nullptr;
};

using Gradients = absl::InlinedVector<Tensor, 2>;  // an undefined entry means no gradient

class Node : public RefCounted {
 public:
  enum class Type : uint8_t { kLeaf, kOperator, kClientFunction, kView, kWrite };

  explicit Node(uint32_t outputs) : outputs_(outputs) {}
  ~Node() override;

  virtual Type type() const = 0;

  // Returns a name such as "MulBackward".
  virtual std::string name() const = 0;
  // Describes the node in profiles: name(), or for an OperatorNode its form().
  virtual std::string form() const { return name(); }
  // Computes one entry of `results` per edge. `gradients` has one entry per output, at least one of them defined; the
  // node may overwrite them. Throws Error.
  virtual void run(Gradients& gradients, Gradients& results) = 0;
  // Frees the saved tensors. A later run() that needs them fails.
  virtual void release() {}
  bool is_leaf() const { return type() == Type::kLeaf; }
  // Whether release() has freed tensors that run() needs.
  virtual bool is_released() const { return false; }
  bool is_operator() const { return type() == Type::kOperator; }
  // The client's number for this node if the client computes its gradients, else 0.
  virtual int64_t client_node_id() const { return 0; }
  // The client's number for this node if the client stores its saved tensors, else 0. The node is an OperatorNode then.
  virtual int64_t saved_stop() const { return 0; }
  // Returns zeros shaped like the gradient of `output`. Used when a required gradient is missing.
  virtual Tensor zeros(uint32_t output) const = 0;

  // Position on the tape. A node's sequence is larger than those of the nodes that it depends on, except that leaves
  // have the largest possible sequence.
  uint64_t sequence() const { return sequence_; }
  // The name of the first result of the instruction that recorded the node; see CallScope::first_result.
  uint64_t first_result() const { return first_result_; }
  uint32_t site() const { return site_; }  // the user's source line that issued the operation
  uint32_t outputs() const { return outputs_; }

  // Assigns the sequence number and the user's source line. Call it after the edges are set: edge_of() on a view may
  // create a node, which must get a smaller sequence number.
  void enter_tape();
  // The same for a node of an image (autograd/image.h), with what enter_tape() had assigned.
  void reenter_tape(uint64_t sequence, uint64_t first_result, uint32_t site);
  // Adds a hook to `hooks` and its bytes to the tape's host memory count.
  void add_hook(Hook hook);

  absl::InlinedVector<Edge, 2> edges;
  std::unique_ptr<std::vector<Hook>> hooks;
  // Id of the GraphTask that marked this node, and the index of the node's state in that GraphTask (graph_task.h).
  uint64_t task = 0;
  uint32_t task_index = 0;

 protected:
  // Sets the node's approximate host memory in bytes, excluding the data of saved tensors. Requires enter_tape().
  void set_host_bytes(size_t bytes);

  uint64_t sequence_ = 0;

 private:
  uint64_t first_result_ = 0;
  TapeMeter* meter_ = nullptr;  // null until enter_tape() or, for a leaf, the first hook
  size_t host_bytes_ = 0;
  uint32_t site_ = 0;
  uint32_t outputs_;
};

}  // namespace tt::autograd
