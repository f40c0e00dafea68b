#include "client/nn/save.h"

namespace teletensor {

Value to_value(const OrderedDict<Tensor>& tensors) {
  Value::Dict dict;
  for (const auto& [name, tensor] : tensors) dict.emplace_back(name, tensor);
  return dict;
}
OrderedDict<Tensor> to_tensors(const Value& value) {
  OrderedDict<Tensor> tensors;
  for (const auto& [name, tensor] : value.to_dict()) tensors.insert(name.to_string(), tensor.to_tensor());
  return tensors;
}

void save(const nn::Module& module, const std::string& path) { save(to_value(module.state_dict()), path); }
void load(nn::Module& module, const std::string& path, bool strict) {
  module.load_state_dict(to_tensors(load(path)), strict);
}

}  // namespace teletensor
