#include "autograd/nodes/leaf.h"

#include "autograd/nodes/accumulate.h"
#include "autograd/nodes/history.h"
#include "engine/dispatch/ops.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"
#include "engine/session/gradient_observers.h"

namespace tt::autograd {

Tensor LeafNode::zeros(uint32_t) const {
  check(leaf_ != nullptr, "the leaf tensor was destroyed; it has no gradient");
  return ops::zeros(leaf_->sizes, leaf_->dtype, leaf_->device);
}

void LeafNode::run(Gradients& gradients, Gradients&) {
  Tensor& gradient = gradients[0];
  if (!leaf_ || !gradient) return;
  check(gradient.sizes() == leaf_->sizes, "expected a gradient of the tensor's sizes, got ",
        to_string(gradient.sizes()), " for a tensor of ", to_string(leaf_->sizes));
  const History& history = *find_history(*leaf_);
  if (!history.grad && !history.grad_error) {
    bool ours = is_sole_owner(gradient) && gradient.is_contiguous();
    // The client knows gradients in row-major order.
    if (!ours) gradient = gradient.is_contiguous() ? ops::clone(gradient) : ops::contiguous(gradient);
    // A gradient that is a view, and is not recorded itself, is stored without its base.
    if (gradient->base && !gradient.requires_grad()) gradient = detach(gradient);
  }
  add_to(*leaf_, std::move(gradient), !Context::current().grad_enabled);
}

Tensor LeafNode::add_to(TensorImpl& leaf, Tensor gradient, bool in_place) {
  History& history = *find_history(leaf);
  if (history.grad_error) throw *history.grad_error;
  accumulate(history.grad, std::move(gradient), in_place, /*deferred=*/nullptr);
  if (const auto* observers = Context::current().services.find<GradientObservers>()) {
    observers->accumulated(&leaf, history.grad);
  }
  return history.grad;
}

void LeafNode::invalidate_gradient(const std::shared_ptr<const Error>& error) {
  if (!leaf_) return;
  History& history = *find_history(*leaf_);
  if (!history.grad_error) history.grad_error = error;
}

}  // namespace tt::autograd
