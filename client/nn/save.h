// save and load of a module's state, as a `.pt` file with its state_dict.
#pragma once

#include <string>

#include "client/nn/module.h"
#include "client/serialize/save.h"

namespace teletensor {

/// Writes module.state_dict(), which Python's load_state_dict() accepts.
void save(const nn::Module& module, const std::string& path);
/// Loads a state_dict that C++ or Python has written.
void load(nn::Module& module, const std::string& path, bool strict = true);

template <typename Impl>
void save(const nn::ModuleHolder<Impl>& module, const std::string& path) {
  save(static_cast<const nn::Module&>(*module), path);
}
template <typename Impl>
void save(const std::shared_ptr<Impl>& module, const std::string& path) {
  save(static_cast<const nn::Module&>(*module), path);
}
template <typename Impl>
void load(const nn::ModuleHolder<Impl>& module, const std::string& path, bool strict = true) {
  load(static_cast<nn::Module&>(*module), path, strict);
}
template <typename Impl>
void load(const std::shared_ptr<Impl>& module, const std::string& path, bool strict = true) {
  load(static_cast<nn::Module&>(*module), path, strict);
}

/// A dict of tensors as a value, and the reverse. Throws TypeError for other values.
Value to_value(const OrderedDict<Tensor>& tensors);
OrderedDict<Tensor> to_tensors(const Value& value);

}  // namespace teletensor
