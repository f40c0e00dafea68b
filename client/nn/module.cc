#include "client/nn/module.h"

#include <algorithm>
#include <ostream>
#include <sstream>

#include "client/api/autograd.h"
#include "client/api/session.h"

namespace teletensor::nn {

Module::~Module() = default;

void Module::check_name(const std::string& name) const {
  if (name.empty() || name.find('.') != std::string::npos) {
    throw ValueError("expected a name without dots that is not empty, got '" + name + "'");
  }
  if (parameters_.contains(name) || buffers_.contains(name) || children_.contains(name)) {
    throw ValueError("attribute '" + name + "' already exists");
  }
}

Tensor Module::register_parameter(const std::string& name, Tensor tensor, bool requires_grad) {
  check_name(name);
  if (tensor.defined() && !tensor.is_leaf()) {
    throw ValueError("cannot register '" + name + "' as a parameter: only leaf tensors may be parameters");
  }
  if (tensor.defined() && tensor.requires_grad() != requires_grad) tensor.set_requires_grad(requires_grad);
  return parameters_.insert(name, std::move(tensor));
}

Tensor Module::register_buffer(const std::string& name, Tensor tensor, bool persistent) {
  check_name(name);
  if (!persistent) temporary_.push_back(name);
  return buffers_.insert(name, std::move(tensor));
}

void Module::add_module(const std::string& name, std::shared_ptr<Module> module) {
  if (!module) throw ValueError("expected a module for '" + name + "', got null");
  if (std::shared_ptr<Module>* child = children_.find(name)) {
    *child = std::move(module);
    return;
  }
  check_name(name);
  children_.insert(name, std::move(module));
}

void Module::collect(const std::string& prefix, bool recurse, bool persistent_only,
                     const OrderedDict<Tensor> Module::*members, OrderedDict<Tensor>* into) const {
  for (const auto& [name, tensor] : this->*members) {
    const bool is_temporary = std::find(temporary_.begin(), temporary_.end(), name) != temporary_.end();
    if (tensor.defined() && !(persistent_only && is_temporary)) into->insert(prefix + name, tensor);
  }
  if (!recurse) return;
  for (const auto& [name, child] : children_) child->collect(prefix + name + ".", true, persistent_only, members, into);
}

OrderedDict<Tensor> Module::named_parameters(bool recurse) const {
  OrderedDict<Tensor> found, unique;
  collect("", recurse, false, &Module::parameters_, &found);
  for (const auto& [name, tensor] : found) {  // a parameter that two modules share is listed once
    const bool seen =
        std::any_of(unique.begin(), unique.end(), [&](const auto& u) { return u.value().is_same(tensor); });
    if (!seen) unique.insert(name, tensor);
  }
  return unique;
}
std::vector<Tensor> Module::parameters(bool recurse) const { return named_parameters(recurse).values(); }

OrderedDict<Tensor> Module::named_buffers(bool recurse) const {
  OrderedDict<Tensor> found;
  collect("", recurse, false, &Module::buffers_, &found);
  return found;
}
std::vector<Tensor> Module::buffers(bool recurse) const { return named_buffers(recurse).values(); }

void Module::visit(const std::string& prefix, OrderedDict<std::shared_ptr<Module>>* into) const {
  for (const auto& [name, child] : children_) {
    const std::string path = prefix.empty() ? name : prefix + "." + name;
    into->insert(path, child);
    child->visit(path, into);
  }
}
OrderedDict<std::shared_ptr<Module>> Module::named_modules(const std::string& prefix, bool include_self) const {
  OrderedDict<std::shared_ptr<Module>> found;
  if (include_self) {
    if (std::shared_ptr<const Module> self = weak_from_this().lock()) {
      found.insert(prefix, std::const_pointer_cast<Module>(self));
    }
  }
  visit(prefix, &found);
  return found;
}
std::vector<std::shared_ptr<Module>> Module::modules(bool include_self) const {
  return named_modules("", include_self).values();
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& [name, child] : children_) child->train(on);
}

void Module::convert(std::optional<Device> device, std::optional<Dtype> dtype) {
  NoGradGuard no_grad;
  const auto target = [&](const Tensor& tensor) {
    TensorOptions options;
    if (device) options = options.device(*device);
    if (dtype && tensor.is_floating_point()) options = options.dtype(*dtype);
    return tensor.detach().to(options);
  };
  const auto move = [&](const Tensor& tensor) {
    if (!tensor.defined()) return;
    const bool same =
        (!device || tensor.device() == *device) && (!dtype || !tensor.is_floating_point() || tensor.dtype() == *dtype);
    if (same) return;
    const Tensor gradient = tensor.grad();
    tensor.set_grad(Tensor());
    tensor.set_data(target(tensor));
    if (gradient.defined()) tensor.set_grad(target(gradient));
  };
  for (const Tensor& parameter : parameters()) move(parameter);
  for (const Tensor& buffer : buffers()) move(buffer);
}

void Module::zero_grad(bool set_to_none) { autograd::internal::zero_gradients(parameters(), set_to_none); }

void Module::apply(const std::function<void(Module&)>& function) {
  for (const auto& [name, child] : children_) child->apply(function);
  function(*this);
}
void Module::apply(const std::function<void(const std::string&, Module&)>& function, const std::string& prefix) {
  for (const auto& [name, child] : children_) child->apply(function, prefix.empty() ? name : prefix + "." + name);
  function(prefix, *this);
}

OrderedDict<Tensor> Module::state_dict() const {
  OrderedDict<Tensor> state;
  // In Python's order: parameters and buffers of a module, then its children's.
  const std::function<void(const Module&, const std::string&)> add = [&](const Module& module,
                                                                         const std::string& prefix) {
    module.collect(prefix, false, true, &Module::parameters_, &state);
    module.collect(prefix, false, true, &Module::buffers_, &state);
    for (const auto& [name, child] : module.children_) add(*child, prefix + name + ".");
  };
  add(*this, "");
  for (auto& item : state) item.value() = item.value().detach();
  return state;
}

void Module::load_state_dict(const OrderedDict<Tensor>& state, bool strict) {
  const OrderedDict<Tensor> own = state_dict();
  std::string wrong;
  for (const auto& [name, tensor] : own) {
    const Tensor* given = state.find(name);
    if (!given && strict) wrong += "\n\tMissing key: \"" + name + "\".";
    if (given && !(given->sizes() == tensor.sizes())) {
      std::ostringstream text;
      text << "\n\tsize mismatch for " << name << ": copying a param with shape " << given->sizes()
           << " from checkpoint, the shape in current model is " << tensor.sizes() << ".";
      wrong += text.str();
    }
  }
  for (const std::string& name : state.keys()) {
    if (strict && !own.contains(name)) wrong += "\n\tUnexpected key: \"" + name + "\".";
  }
  if (!wrong.empty()) throw RuntimeError("Error(s) in loading state_dict for " + name_ + ":" + wrong);
  NoGradGuard no_grad;
  for (const auto& [name, tensor] : own) {
    if (const Tensor* given = state.find(name)) tensor.copy_(*given);
  }
}

namespace {

void print(std::ostream& stream, const Module& module, const std::string& indent) {
  module.pretty_print(stream);
  if (module.named_children().is_empty()) return;
  stream << "(\n";
  for (const auto& [name, child] : module.named_children()) {
    stream << indent << "  (" << name << "): ";
    print(stream, *child, indent + "  ");
    stream << '\n';
  }
  stream << indent << ')';
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const Module& module) {
  print(stream, module, "");
  return stream;
}

}  // namespace teletensor::nn
