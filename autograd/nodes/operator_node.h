// OperatorNode: a declared operator on the tape, with the values that its gradient formulas read.
#pragma once

#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "autograd/nodes/gradient.h"
#include "autograd/nodes/node.h"
#include "autograd/nodes/saved_bytes.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/dispatch/operand.h"
#include "engine/schema/thread_cached.h"

namespace tt::autograd {

// A tensor saved for backward, and the version of its storage at that time. It is saved without its history, which
// would create reference cycles: a tensor written to in place may depend on this node.
struct Saved {
  Tensor tensor;  // undefined for an absent list entry, and while the client stores the tensor or it is recomputed
  uint32_t version = 0;
  int16_t at = 0;     // parameter index, or ~i for result i
  int32_t edge = -1;  // index of the edge that gives the tensor's history, or -1
  // The tensor's metadata when it was saved, if `tensor` is on another device, the client stores it, it is recomputed,
  // or `bytes` is set; else null.
  std::unique_ptr<const TensorMeta> meta = nullptr;
  // If set, the tensor is `meta` over these bytes, and `tensor` is undefined.
  Ref<SharedBytes> bytes = {};

  bool is_stored() const { return tensor || bytes; }
};

// A saved tensor that a backward pass passes to a node: a tensor, or the layout of a tensor over bytes.
struct SuppliedTensor {
  Tensor tensor;
  uint32_t version = 0;
  Ref<SharedBytes> bytes = {};
  TensorMeta meta = {};  // if `bytes` is set
};

// The results of a call of a function's first run, which its next runs use (autograd/nodes/recomputations.h).
struct KeptResults {
  const Op* op = nullptr;
  std::vector<Tensor> tensors;     // without histories
  std::vector<uint32_t> versions;  // of their storages
};

// Metadata of an argument, or of one of several results, whose value is not saved.
struct Shape final : TensorMeta, ThreadCached<Shape> {
  int16_t at = 0;  // same meaning as in Saved
  std::unique_ptr<Shape> next;
};

class OperatorNode final : public Node, public ThreadCached<OperatorNode> {
 public:
  // Records the edges and saves the arguments that the formulas read. Call it before the operator runs: arguments that
  // the call overwrites are copied.
  OperatorNode(const Call& call, const Gradient& gradient);
  // Saves the results that the formulas read. Call it after the operator has run.
  void save_results(const Call& call);

  std::string name() const override;
  // Returns "operator:" and a character per argument: the number of dimensions of a tensor whose sizes are kept, else
  // 'g' if it needs a gradient, 'v' for a value that is kept, and '-' for anything else.
  std::string form() const override;
  void run(Gradients& gradients, Gradients& results) override;
  void release() override;
  Tensor zeros(uint32_t output) const override;
  int64_t saved_stop() const override { return saved_stop_; }
  bool is_released() const override { return released_; }
  Type type() const override { return Type::kOperator; }
  const Op& op() const { return *op_; }

  // Returns a JSON object: the operator, the numbers and sizes of its arguments, and where it has saved tensors.
  std::string to_json() const;
  // Returns the saved tensor at `place` of the description, with its history in grad mode. Throws Error if it was
  // modified since it was saved, was freed, or is stored by the client.
  Tensor saved_at(int64_t place);

  // The saved tensors, without absent list entries.
  std::vector<Tensor> saved_tensors() const;
  // Frees the saved tensors. A pass stops at `stop` until the client supplies them.
  void leave_saved_to_client(int64_t stop);
  // Whether tensors were saved, or are recomputed.
  bool has_saved() const;
  // For a node whose saved tensors are recomputed: a pass stops at `stop` until a run of the node's function has saved
  // them under `at` (autograd/nodes/recomputations.h).
  void recompute_saved(int64_t stop, int64_t at);
  // Owns the results until release().
  void keep_results(std::shared_ptr<const KeptResults> results);
  bool is_recomputed() const { return recomputed_at_ >= 0; }
  int64_t recomputed_at() const { return recomputed_at_; }
  // The saved tensors, without absent list entries, with their versions.
  std::vector<SuppliedTensor> share_saved() const;
  // Sets the saved tensors for one run(). Throws Error unless they match those that were saved.
  void supply(absl::Span<const SuppliedTensor> tensors);
  void withdraw();

 private:
  friend class Backward;
  friend class TapeImage;

  // Of an image, without its arguments and edges.
  OperatorNode(const Op& op, const Gradient& gradient, uint32_t outputs)
      : Node(outputs), op_(&op), gradient_(&gradient) {}
  std::string describe_saved() const;
  int64_t input_number(int32_t edge) const;  // the number of an edge among those with a node, or -1
  void add_edges(const Call& call);
  // What the formulas read that compute the needed gradients.
  GradientPart read_parts() const;
  void save_arguments(const Call& call);
  void save(const Call& call, int16_t param, int32_t edge, const TensorMeta* t);
  void store(Tensor tensor, int16_t at, int32_t edge);
  void copy_lists();
  void save_broadcast_sizes(const Call& call);
  void save_shape(int16_t at, const TensorMeta& meta);
  void count_host_bytes();
  const Shape* find_shape(int16_t at) const;
  const Saved* find_saved(int16_t at) const;
  const TensorMeta* find_meta(int16_t at) const;  // null if the sizes are not kept
  // Returns the saved tensor, with its history under create_graph. Throws Error if the tensor was modified since it was
  // saved.
  Tensor restore(const Saved& saved);
  size_t first_edge(size_t param) const;

  const Op* op_;
  const Gradient* gradient_;
  absl::InlinedVector<Arg, 4> args_;  // non-tensors by value; only the length of a tensor list
  absl::InlinedVector<Saved, 2> saved_;
  std::unique_ptr<Shape> shapes_;
  std::vector<TensorMeta> many_results_;            // used instead of shapes_ if the operator has many results
  std::unique_ptr<std::vector<Sizes>> list_sizes_;  // entry sizes of the list that a formula reads
  std::unique_ptr<char[]> bytes_;                   // storage of the lists and strings in args_
  uint32_t needed_ = 0;                             // bit mask of the parameters that need a gradient
  uint32_t saved_results_ = 0;
  int64_t saved_stop_ = 0;      // the client's number for the saved tensors that it supplies; 0: the node stores them
  int64_t recomputed_at_ = -1;  // place of the saved tensors among those that a run of the function saves, or -1
  std::shared_ptr<const KeptResults> kept_;
  bool released_ = false;
};

// The interface that gradient formulas use during one run of an OperatorNode.
class Backward {
 public:
  Backward(OperatorNode& node, Gradients& gradients, Gradients& results)
      : node_(node), gradients_(gradients), results_(results) {}

  // Gradient of one result (zeros if it has none), or of all results of an operator that returns a list (undefined
  // entries have no gradient).
  Tensor gradient(uint32_t output);
  Tensors gradients();

  // Saved arguments are selected by parameter index, saved results by position. Complex values are conjugated if
  // Gradient::conjugates is set.
  Tensor tensor(int16_t param);  // undefined if an optional argument was omitted
  Operand operand(int16_t param);
  Tensors list(int16_t param);
  const std::vector<Sizes>& shapes();  // entry sizes of the tensor list that formulas read; at most one list
  const TensorMeta& meta(int16_t param);
  const Arg& arg(size_t param) const { return node_.args_[param]; }
  Tensor result(int16_t output);

  const Op& op() const { return *node_.op_; }
  bool needs(size_t param) const { return (node_.needed_ >> param & 1) != 0; }
  void set_gradient(size_t param, Tensor gradient);
  void set_gradient_list(size_t param, Tensors gradients);
  void set_gradients(std::initializer_list<size_t> params, Tensors gradients);

 private:
  Tensor fit(size_t param, const Edge& edge, Tensor gradient) const;
  Tensor restore(const Saved& saved) const;

  OperatorNode& node_;
  Gradients& gradients_;
  Gradients& results_;
  absl::InlinedVector<Tensor, 4> held_;  // tensors that the returned operands refer to
};

}  // namespace tt::autograd
