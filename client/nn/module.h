// Module: a layer or model with named parameters, buffers and submodules, as libtorch's.
//
// A module is owned by shared pointers. It is used by one thread at a time, except that forward() may run in several
// threads under NoGradGuard while nothing changes the module.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/api/functions.h"
#include "client/api/tensor.h"
#include "client/nn/ordered_dict.h"

namespace teletensor::nn {

template <typename Impl>
class ModuleHolder;

class Module : public std::enable_shared_from_this<Module> {
 public:
  /// `name` is what operator<< prints.
  explicit Module(std::string name = "Module") : name_(std::move(name)) {}
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// The functions that register return the member's value. Throw ValueError for a name that is taken, is empty or has
  /// a dot.
  Tensor register_parameter(const std::string& name, Tensor tensor, bool requires_grad = true);
  /// A tensor that is part of the state but is not trained. With `persistent` false it is not in state_dict().
  Tensor register_buffer(const std::string& name, Tensor tensor, bool persistent = true);
  template <typename M>
  std::shared_ptr<M> register_module(const std::string& name, std::shared_ptr<M> module) {
    add_module(name, module);
    return module;
  }
  template <typename M>
  std::shared_ptr<M> register_module(const std::string& name, const ModuleHolder<M>& holder) {
    return register_module(name, holder.ptr());
  }

  /// Parameters that are undefined (a layer's bias, if it has none) are left out.
  std::vector<Tensor> parameters(bool recurse = true) const;
  OrderedDict<Tensor> named_parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  OrderedDict<Tensor> named_buffers(bool recurse = true) const;
  std::vector<std::shared_ptr<Module>> children() const { return children_.values(); }
  const OrderedDict<std::shared_ptr<Module>>& named_children() const { return children_; }
  /// This module (if it is owned by a shared pointer and `include_self`) and all below it.
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const;
  OrderedDict<std::shared_ptr<Module>> named_modules(const std::string& prefix = "", bool include_self = true) const;

  virtual void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }
  /// Convert parameters and buffers, in place; a dtype only those that are floating point.
  void to(Dtype dtype) { convert(std::nullopt, dtype); }
  void to(Device device) { convert(device, std::nullopt); }
  void to(DeviceType type) { to(Device(type)); }
  void to(Device device, Dtype dtype) { convert(device, dtype); }
  /// Removes the gradients, or with `set_to_none` false fills them with zeros.
  void zero_grad(bool set_to_none = true);
  /// Calls `function` for all modules below this one, then for this one.
  void apply(const std::function<void(Module&)>& function);
  void apply(const std::function<void(const std::string&, Module&)>& function, const std::string& prefix = "");

  /// The parameters and persistent buffers by their path, as in Python; without their history.
  OrderedDict<Tensor> state_dict() const;
  /// Copies values into parameters and buffers. With `strict`, throws RuntimeError for missing and unexpected names;
  /// always for sizes that differ.
  void load_state_dict(const OrderedDict<Tensor>& state, bool strict = true);

  const std::string& name() const { return name_; }
  /// The line that operator<< prints for this module.
  virtual void pretty_print(std::ostream& stream) const { stream << name_; }
  /// This module as a type that it is; null if it is not.
  template <typename M>
  M* as() {
    return dynamic_cast<M*>(this);
  }
  template <typename M>
  const M* as() const {
    return dynamic_cast<const M*>(this);
  }

 protected:
  void set_name(std::string name) { name_ = std::move(name); }
  /// Replaces or adds a child.
  void add_module(const std::string& name, std::shared_ptr<Module> module);

 private:
  void convert(std::optional<Device> device, std::optional<Dtype> dtype);
  void check_name(const std::string& name) const;
  void collect(const std::string& prefix, bool recurse, bool persistent_only,
               const OrderedDict<Tensor> Module::*members, OrderedDict<Tensor>* into) const;
  void visit(const std::string& prefix, OrderedDict<std::shared_ptr<Module>>* into) const;

  std::string name_;
  bool training_ = true;
  OrderedDict<Tensor> parameters_, buffers_;
  std::vector<std::string> temporary_;  // buffers that are not persistent
  OrderedDict<std::shared_ptr<Module>> children_;
};

/// Prints the module and what is below it, indented.
std::ostream& operator<<(std::ostream& stream, const Module& module);

/// A shared pointer to a module that is called like a function. TELETENSOR_MODULE(Name) derives the holder Name of a
/// module NameImpl.
template <typename Impl>
class ModuleHolder {
 public:
  using ContainedType = Impl;
  /// Makes a module; with nullptr, an empty holder, to be assigned later.
  ModuleHolder() : impl_(make()) {}
  ModuleHolder(std::nullptr_t) {}                                       // NOLINT: as libtorch's
  ModuleHolder(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}  // NOLINT
  template <typename First, typename... Rest>
  requires(!std::is_convertible_v<First, std::shared_ptr<Impl>> &&
           !std::is_base_of_v<ModuleHolder, std::remove_cvref_t<First>>) explicit ModuleHolder(First&& first,
                                                                                               Rest&&... rest)
      : impl_(std::make_shared<Impl>(std::forward<First>(first), std::forward<Rest>(rest)...)) {}
  /// Options in braces: Conv2d({3, 16, 3}).
  template <typename I = Impl, typename Options = typename I::OptionsType>
  explicit ModuleHolder(const Options& options) : impl_(std::make_shared<Impl>(options)) {}

  const std::shared_ptr<Impl>& ptr() const { return check(), impl_; }
  Impl* get() const { return check(), impl_.get(); }
  Impl* operator->() const { return get(); }
  Impl& operator*() const { return *get(); }
  /// Of containers.
  template <typename Key>
  decltype(auto) operator[](const Key& key) const {
    return (*get())[key];
  }
  bool is_empty() const { return impl_ == nullptr; }
  explicit operator bool() const { return !is_empty(); }
  /// Calls forward().
  template <typename... Args>
  decltype(auto) operator()(Args&&... args) const {
    return get()->forward(std::forward<Args>(args)...);
  }

 protected:
  std::shared_ptr<Impl> impl_;

 private:
  static std::shared_ptr<Impl> make() {
    if constexpr (std::is_default_constructible_v<Impl>) {
      return std::make_shared<Impl>();
    } else {
      return nullptr;
    }
  }
  void check() const {
    if (!impl_) throw RuntimeError("expected a module, got an empty holder");
  }
};

template <typename Impl>
std::ostream& operator<<(std::ostream& stream, const ModuleHolder<Impl>& holder) {
  return stream << static_cast<const Module&>(*holder);
}

}  // namespace teletensor::nn

/// Declares the holder `Name` of the module `Name##Impl`; as TORCH_MODULE.
#define TELETENSOR_MODULE(Name)                                     \
  class Name : public ::teletensor::nn::ModuleHolder<Name##Impl> {  \
   public:                                                          \
    using ::teletensor::nn::ModuleHolder<Name##Impl>::ModuleHolder; \
    using Impl [[maybe_unused]] = Name##Impl;                       \
  }

/// An option of a struct of options, which is set by `name(value)` and read by `name()`; as TORCH_ARG.
#define TELETENSOR_ARG(T, name)                                                 \
 public:                                                                        \
  auto name(const T& value)->decltype(*this) { return name##_ = value, *this; } \
  const T& name() const { return name##_; }                                     \
                                                                                \
 private:                                                                       \
  T name##_
