#include "client/api/autograd.h"

#include <memory>

#include "client/api/errors.h"
#include "client/api/session.h"
#include "client/autograd/backward.h"
#include "client/autograd/backward_pass.h"
#include "client/session/call_mode.h"
#include "client/session/graph.h"
#include "client/session/program_trace.h"

namespace teletensor {
namespace {

using Handles = std::vector<tt::client::Tensor>;

Handles handles_of(const std::vector<Tensor>& tensors) {
  Handles handles;
  handles.reserve(tensors.size());
  for (const Tensor& t : tensors) handles.push_back(t.handle());
  return handles;
}
std::vector<Tensor> tensors_of(Handles handles) {
  std::vector<Tensor> tensors;
  tensors.reserve(handles.size());
  for (tt::client::Tensor& handle : handles) tensors.emplace_back(std::move(handle));
  return tensors;
}
void require_defined(const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors) t.meta();
}

// Code of the client in a backward pass records its calls only if the pass creates a graph.
class RecordMode {
 public:
  explicit RecordMode(bool record) : before_(std::exchange(tt::client::call_mode.grad, record)) {}
  ~RecordMode() { tt::client::call_mode.grad = before_; }
  RecordMode(const RecordMode&) = delete;
  RecordMode& operator=(const RecordMode&) = delete;

 private:
  const bool before_;
};

}  // namespace

const Tensor& Tensor::set_requires_grad(bool value) const {
  meta();
  internal::translated([&] { tt::client::set_requires_grad(handle_, value, /*site=*/0); });
  return *this;
}
bool Tensor::is_leaf() const {
  meta();
  return handle_->is_leaf();
}
Tensor Tensor::grad() const {
  meta();
  if (tt::client::ProgramTrace* const trace = tt::client::ProgramTrace::of(*handle_->session)) [[unlikely]]
    internal::translated([&] { trace->read_grad(handle_); });
  return Tensor(handle_->grad);
}
void Tensor::set_grad(const Tensor& grad) const {
  meta();
  internal::translated([&] { tt::client::set_grads({&handle_, 1}, {&grad.handle(), 1}, /*site=*/0); });
}
void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph) const {
  autograd::backward({*this}, gradient.defined() ? std::vector<Tensor>{gradient} : std::vector<Tensor>{}, retain_graph,
                     create_graph);
}
void Tensor::retain_grad() const {
  meta();
  internal::translated([&] { tt::client::retain_grad(handle_); });
}

void Tensor::set_data(const Tensor& source) const {
  meta();
  source.meta();
  if (!is_leaf()) throw RuntimeError("set_data: expected a leaf, got the result of an operation");
  if (source.session().handle() != handle_->session) {
    throw RuntimeError("set_data: expected tensors of one session");
  }
  if (tt::client::ProgramTrace::is_active())
    throw NotImplementedError("[trace] a traced function cannot replace a tensor, as set_data() does");
  internal::translated([&] {
    const Tensor made = source.is_same(*this) ? *this : source.detach();  // a handle that nothing else refers to
    if (made.is_same(*this)) return;
    tt::client::Handle &mine = *handle_, &other = *made.handle();
    const bool required = mine.requires_grad;
    tt::client::remove_from_graph(mine);
    mine.leaf_node = nullptr;
    if (required) tt::client::set_requires_grad(handle_, false, /*site=*/0);
    std::swap(static_cast<tt::TensorMeta&>(mine), static_cast<tt::TensorMeta&>(other));
    std::swap(mine.id, other.id);
    std::swap(mine.base, other.base);
    std::swap(mine.viewed_storage, other.viewed_storage);
    std::swap(mine.viewed_storage_bytes, other.viewed_storage_bytes);
    mine.bump_version();
    if (required) tt::client::set_requires_grad(handle_, true, /*site=*/0);
  });
}

namespace autograd {

void backward(const std::vector<Tensor>& tensors, const std::vector<Tensor>& grad_tensors,
              std::optional<bool> retain_graph, bool create_graph, const std::vector<Tensor>& inputs) {
  require_defined(tensors);
  require_defined(inputs);
  teletensor::internal::translated([&] {
    const Handles roots = handles_of(tensors), gradients = handles_of(grad_tensors), leaves = handles_of(inputs);
    tt::client::backward(roots, gradients, retain_graph.value_or(create_graph), create_graph, /*site=*/0, leaves);
  });
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& grad_outputs, std::optional<bool> retain_graph, bool create_graph,
                         bool allow_unused) {
  require_defined(outputs);
  require_defined(inputs);
  return teletensor::internal::translated([&] {
    const Handles roots = handles_of(outputs), gradients = handles_of(grad_outputs), leaves = handles_of(inputs);
    return tensors_of(tt::client::grad(roots, gradients, leaves, retain_graph.value_or(create_graph), create_graph,
                                       allow_unused, /*site=*/0));
  });
}

int64_t register_hook(const Tensor& tensor, std::function<Tensor(const Tensor&)> hook) {
  tensor.meta();
  return teletensor::internal::translated([&] {
    return tt::client::add_hook(
        tensor.handle(),
        [hook = std::move(hook)](Handles gradients, bool create_graph) {
          RecordMode mode(create_graph);
          return Handles{hook(Tensor(gradients.at(0))).handle()};
        },
        /*site=*/0);
  });
}
void remove_hook(const Tensor& tensor, int64_t number) {
  tensor.meta();
  teletensor::internal::translated([&] { tt::client::remove_hook(tensor.handle(), number, /*site=*/0); });
}

std::vector<Tensor> AutogradContext::get_saved_variables() const {
  std::vector<Tensor> tensors = saved_;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i] < 0) continue;
    teletensor::internal::translated(
        [&] { tensors[i] = Tensor(tt::client::BackwardPass::history_in_pass(stop_, places_[i], saved_[i].handle())); });
  }
  return tensors;
}

namespace internal {

void zero_gradients(const std::vector<Tensor>& leaves, bool set_to_none) {
  const NoGradGuard no_grad;
  const bool is_traced = set_to_none && tt::client::ProgramTrace::is_active();
  for (const Tensor& leaf : leaves) {
    if (is_traced) {
      leaf.set_grad(Tensor());
      continue;
    }
    const Tensor gradient = leaf.grad();
    if (!gradient.defined()) continue;
    if (set_to_none) {
      leaf.set_grad(Tensor());
    } else {
      (gradient.requires_grad() ? gradient.detach() : gradient).zero_();  // a traced function cannot write to a view
    }
  }
}

// One call of a Function.
class Application {
 public:
  // Replaces saved results by views without history.
  static void detach_results(AutogradContext& context, const std::vector<Tensor>& results) {
    context.places_.assign(context.saved_.size(), -1);
    for (size_t i = 0; i < context.saved_.size(); ++i) {
      for (size_t j = 0; j < results.size() && context.saved_[i].defined(); ++j) {
        if (!context.saved_[i].is_same(results[j])) continue;
        context.saved_[i] = results[j].detach();
        context.places_[i] = static_cast<int64_t>(j);
        break;
      }
    }
  }
  static void set_stop(AutogradContext& context, int64_t stop) { context.stop_ = stop; }
};

std::vector<Tensor> apply(const std::vector<Tensor>& inputs, const Forward& forward, const Backward& backward) {
  auto context = std::make_shared<AutogradContext>();
  std::vector<Tensor> outputs;
  {
    NoGradGuard no_grad;
    outputs = forward(*context);
    Application::detach_results(*context, outputs);
  }
  bool needs_grad = false;
  for (const Tensor& input : inputs) needs_grad |= input.defined() && input.requires_grad();
  if (!is_grad_enabled() || !needs_grad) return outputs;
  teletensor::internal::translated([&] {
    const int64_t stop = tt::client::custom_function(
        handles_of(inputs), handles_of(outputs),
        [context, backward](Handles gradients, bool create_graph) {
          RecordMode mode(create_graph);
          return handles_of(backward(*context, tensors_of(std::move(gradients))));
        },
        /*site=*/0);
    Application::set_stop(*context, stop);
  });
  return outputs;
}

}  // namespace internal
}  // namespace autograd
}  // namespace teletensor
