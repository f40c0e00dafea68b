// OperatorNode: a declared operator on the tape, with what its gradient's formulas read.
#pragma once

#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "autograd/gradient.h"
#include "autograd/node.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/dispatch/operand.h"
#include "engine/schema/recycled.h"

namespace tt::autograd {

// A tensor kept for backward, and the version of its bytes that the formulas mean. Kept without its
// history, which would close circles: a tensor written to in place may depend on this very node.
struct Saved {
  Tensor tensor;  // undefined: an absent entry of a list
  uint32_t version = 0;
  int16_t at = 0;     // the parameter, or ~i for result i
  int32_t edge = -1;  // which says its history, where it has one
};

// What is known of an argument, or of one result among several, that was not kept itself.
struct Shape final : TensorMeta, Recycled<Shape> {
  int16_t at = 0;  // as in Saved
  std::unique_ptr<Shape> next;
};

class OperatorNode final : public Node, public Recycled<OperatorNode> {
 public:
  // Takes from the call, before it runs, its edges and the arguments that will be needed. Those
  // among `targets`, which the call is about to overwrite, are copied.
  OperatorNode(const Call& call, const Gradient& gradient);
  // Takes the results that will be needed; the call has run.
  void keep_results(const Call& call);

  std::string name() const override;
  void run(Gradients& gradients, Gradients& results) override;
  void release() override;
  Tensor zeros(uint32_t output) const override;

 private:
  friend class Backward;

  void add_edges(const Call& call);
  void keep_arguments(const Call& call);
  void keep(const Call& call, int16_t param, int32_t edge, const TensorMeta* t);
  void keep_bytes();
  void keep_broadcast(const Call& call);
  void keep_shape(int16_t at, const TensorMeta& meta);
  void count_host_bytes();
  const Shape* find_shape(int16_t at) const;
  const Saved* find_saved(int16_t at) const;
  // The tensor as it was, under create_graph with the history it had; throws Error where it was
  // written to since.
  Tensor restore(const Saved& saved);
  size_t first_edge(size_t param) const;

  const Op* op_;
  const Gradient* gradient_;
  absl::InlinedVector<Arg, 4> args_;  // plain ones as they were; of lists, only how long they are
  absl::InlinedVector<Saved, 2> saved_;
  std::unique_ptr<Shape> shapes_;
  std::vector<TensorMeta> many_results_;            // of a long list of results, instead of shapes_
  std::unique_ptr<std::vector<Sizes>> list_sizes_;  // of the list whose entries' sizes are asked for
  std::unique_ptr<char[]> bytes_;                   // of lists and strings among args_
  uint32_t needed_ = 0;                             // the parameters whose gradients are wanted, as bits
  uint32_t kept_results_ = 0;
  bool released_ = false;
};

// What a gradient's formulas work with: one run of an OperatorNode.
class Backward {
 public:
  Backward(OperatorNode& node, Gradients& gradients, Gradients& results)
      : node_(node), gradients_(gradients), results_(results) {}

  // Of one result (zeros where none came), or of all results of an operator that gives a list
  // (undefined where none came).
  Tensor gradient(uint32_t output);
  Tensors gradients();

  // Arguments by parameter, results by position; only those that were kept. Conjugated where the gradient says so.
  Tensor tensor(int16_t param);  // undefined where an optional was left out
  Operand operand(int16_t param);
  Tensors list(int16_t param);
  const std::vector<Sizes>& shapes(int16_t param);  // of a list's entries
  const TensorMeta& meta(int16_t param);
  const Arg& arg(size_t param) const { return node_.args_[param]; }
  Tensor result(int16_t output);

  bool needs(size_t param) const { return (node_.needed_ >> param & 1) != 0; }
  void give(size_t param, Tensor gradient);
  void give_list(size_t param, Tensors gradients);
  void give_each(std::initializer_list<size_t> params, Tensors gradients);

 private:
  Tensor fit(size_t param, const Edge& edge, Tensor gradient) const;
  Tensor restore(const Saved& saved) const;

  OperatorNode& node_;
  Gradients& gradients_;
  Gradients& results_;
  absl::InlinedVector<Tensor, 4> held_;  // what operands borrow
};

}  // namespace tt::autograd
