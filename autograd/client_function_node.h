// ClientFunctionNode: a function on the tape whose backward runs in the client, between two pieces of a
// Task.
#pragma once

#include <vector>

#include "autograd/node.h"

namespace tt::autograd {

class ClientFunctionNode final : public Node {
 public:
  // Edges to `inputs` in order; `outputs` is what the function made of them, for their shapes.
  ClientFunctionNode(int64_t stop, absl::Span<const Tensor> inputs, absl::Span<const Tensor> outputs);
  std::string name() const override { return "FunctionBackward"; }
  int64_t stop() const override { return stop_; }
  // Runs where no gradient arrived at all; otherwise the client does.
  void run(Gradients&, Gradients&) override {}
  Tensor zeros(uint32_t output) const override;
  // A gradient that the client computed for input `i`, in that input's shape and dtype. Throws Error
  // where it does not fit.
  Tensor fit(size_t i, Tensor gradient) const;

 private:
  int64_t stop_;
  std::vector<TensorMeta> inputs_;
  std::vector<TensorMeta> outputs_;
};

}  // namespace tt::autograd
