// Modules that contain modules: Sequential, ModuleList, ModuleDict.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/nn/module.h"

namespace teletensor::nn {

/// Applies its modules in turn. Each has `Tensor forward(Tensor)`.
class SequentialImpl : public Module {
 public:
  SequentialImpl() : Module("Sequential") {}
  template <typename... Modules>
  requires(sizeof...(Modules) > 0) explicit SequentialImpl(Modules&&... modules) : SequentialImpl() {
    (push_back(std::forward<Modules>(modules)), ...);
  }
  /// With names, as {"conv", nn::Conv2d(...)} in libtorch.
  template <typename M>
  void push_back(const std::string& name, const ModuleHolder<M>& module) {
    add(name, module.ptr());
  }
  template <typename M>
  void push_back(const ModuleHolder<M>& module) {
    add(std::to_string(size()), module.ptr());
  }
  template <typename M>
  requires std::is_base_of_v<Module, M>
  void push_back(std::shared_ptr<M> module) { add(std::to_string(size()), std::move(module)); }
  Tensor forward(const Tensor& input) {
    Tensor value = input;
    for (const auto& call : calls_) value = call(value);
    return value;
  }
  size_t size() const { return calls_.size(); }
  bool is_empty() const { return calls_.empty(); }
  const std::shared_ptr<Module>& operator[](size_t i) const { return named_children()[i].value(); }
  /// The i-th module as a type that it is. Throws IndexError or TypeError.
  template <typename M>
  M& at(size_t i) const {
    if (i >= size()) throw IndexError("index " + std::to_string(i) + " is out of range");
    M* module = (*this)[i]->template as<M>();
    if (!module) throw TypeError("the module with index " + std::to_string(i) + " has another type");
    return *module;
  }

 private:
  template <typename M>
  void add(const std::string& name, std::shared_ptr<M> module) {
    register_module(name, module);
    calls_.push_back([module = module.get()](const Tensor& input) -> Tensor { return module->forward(input); });
  }
  std::vector<std::function<Tensor(const Tensor&)>> calls_;
};
/// Holder of SequentialImpl.
class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  Sequential() : ModuleHolder(std::make_shared<SequentialImpl>()) {}
};

/// Modules by their position.
class ModuleListImpl : public Module {
 public:
  ModuleListImpl() : Module("ModuleList") {}
  template <typename M>
  void push_back(const ModuleHolder<M>& module) {
    push_back(module.ptr());
  }
  void push_back(std::shared_ptr<Module> module) { add_module(std::to_string(size()), std::move(module)); }
  size_t size() const { return named_children().size(); }
  bool is_empty() const { return size() == 0; }
  const std::shared_ptr<Module>& operator[](size_t i) const { return named_children()[i].value(); }
  template <typename M>
  M& at(size_t i) const {
    M* module = i < size() ? (*this)[i]->template as<M>() : nullptr;
    if (!module) throw IndexError("no module of this type has index " + std::to_string(i));
    return *module;
  }
};
TELETENSOR_MODULE(ModuleList);

/// Modules by name.
class ModuleDictImpl : public Module {
 public:
  ModuleDictImpl() : Module("ModuleDict") {}
  template <typename M>
  void insert(const std::string& name, const ModuleHolder<M>& module) {
    add_module(name, module.ptr());
  }
  size_t size() const { return named_children().size(); }
  bool contains(const std::string& name) const { return named_children().contains(name); }
  /// Throws IndexError if there is no such name.
  const std::shared_ptr<Module>& operator[](const std::string& name) const { return named_children()[name]; }
  template <typename M>
  M& at(const std::string& name) const {
    M* module = (*this)[name]->template as<M>();
    if (!module) throw TypeError("the module '" + name + "' has another type");
    return *module;
  }
};
TELETENSOR_MODULE(ModuleDict);

}  // namespace teletensor::nn
