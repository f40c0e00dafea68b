// ClientFunctionNode: node of a user-defined function whose backward runs in the client, between two steps of a
// GraphTask.
#pragma once

#include <vector>

#include "autograd/nodes/node.h"

namespace tt::autograd {

class ClientFunctionNode final : public Node {
 public:
  // Adds edges to `inputs` in order. `outputs` are the function's results, used for their shapes.
  ClientFunctionNode(int64_t client_node_id, absl::Span<const Tensor> inputs, absl::Span<const Tensor> outputs);
  std::string name() const override { return "FunctionBackward"; }
  Type type() const override { return Type::kClientFunction; }
  int64_t client_node_id() const override { return client_node_id_; }
  // Does nothing: the client computes the gradients. Called only if no gradient arrived.
  void run(Gradients&, Gradients&) override {}
  Tensor zeros(uint32_t output) const override;
  // Converts the client's gradient for input `i` to the input's shape and dtype. Throws Error if the shape does not
  // match.
  Tensor fit(size_t i, Tensor gradient) const;
  // The edge of input ~`place`, or of the uses of result `place`. Throws Error unless the tensor has its sizes and
  // dtype.
  Edge history_at(int64_t place, const Tensor& tensor) const;

 private:
  friend class TapeImage;
  explicit ClientFunctionNode(uint32_t outputs) : Node(outputs) {}  // of an image

  int64_t client_node_id_ = 0;
  std::vector<TensorMeta> inputs_;
  std::vector<TensorMeta> outputs_;
};

}  // namespace tt::autograd
