// Reverse-mode differentiation; see docs/autograd.md. Nothing here waits for the engine.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "client/api/tensor.h"

namespace teletensor::autograd {

/// Accumulates gradients into the `.grad` of the leaves that `tensors` reach, or only of those in `inputs`. Without
/// gradients, each tensor must have one element.
void backward(const std::vector<Tensor>& tensors, const std::vector<Tensor>& grad_tensors = {},
              std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
              const std::vector<Tensor>& inputs = {});

/// Returns the gradients of `outputs` with respect to `inputs`; undefined where there is none, which requires
/// allow_unused.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& grad_outputs = {}, std::optional<bool> retain_graph = std::nullopt,
                         bool create_graph = false, bool allow_unused = false);

/// Calls `hook` with each gradient of the tensor. A defined result replaces the gradient. Returns a number for
/// remove_hook().
int64_t register_hook(const Tensor& tensor, std::function<Tensor(const Tensor&)> hook);
void remove_hook(const Tensor& tensor, int64_t number);

namespace internal {
class Application;

/// Removes the leaves' gradients, or sets them to zero. In a traced function (client/api/program.h), removing them does
/// not depend on whether there are any.
void zero_gradients(const std::vector<Tensor>& leaves, bool set_to_none);
}  // namespace internal

/// What a Function keeps from forward() for backward().
class AutogradContext {
 public:
  void save_for_backward(std::vector<Tensor> tensors) { saved_ = std::move(tensors); }
  /// The saved tensors. In backward() that is recorded, results of the function have their history.
  std::vector<Tensor> get_saved_variables() const;
  /// Numbers and other tensors.
  std::vector<double> saved_data;

 private:
  friend class internal::Application;
  std::vector<Tensor> saved_;    // without history if they are results, which own this object
  std::vector<int64_t> places_;  // of each saved tensor: its number among the results, or -1
  int64_t stop_ = 0;             // identifies the function in a backward pass
};

namespace internal {
using Forward = std::function<std::vector<Tensor>(AutogradContext&)>;
using Backward = std::function<std::vector<Tensor>(AutogradContext&, const std::vector<Tensor>&)>;
std::vector<Tensor> apply(const std::vector<Tensor>& inputs, const Forward& forward, const Backward& backward);
}  // namespace internal

/// A function with its own derivative: T has `static std::vector<Tensor> forward(AutogradContext*, const
/// std::vector<Tensor>& inputs)` and `static std::vector<Tensor> backward(AutogradContext*, const std::vector<Tensor>&
/// gradients)`, which returns one gradient per input. Outputs must be new tensors.
template <typename T>
struct Function {
  static std::vector<Tensor> apply(const std::vector<Tensor>& inputs) {
    return internal::apply(
        inputs, [&](AutogradContext& context) { return T::forward(&context, inputs); },
        [](AutogradContext& context, const std::vector<Tensor>& gradients) {
          return T::backward(&context, gradients);
        });
  }
};

}  // namespace teletensor::autograd
