#include "client/serialize/value.h"

namespace teletensor {

const char* Value::type_name() const {
  constexpr const char* kNames[] = {"None", "a bool", "an int", "a float", "a str", "a tensor", "a list", "a dict"};
  return kNames[value_.index()];
}

const Value* Value::find(const std::string& key) const {
  for (const auto& [name, value] : to_dict()) {
    if (name.is_string() && name.to_string() == key) return &value;
  }
  return nullptr;
}
const Value* Value::find(int64_t key) const {
  for (const auto& [name, value] : to_dict()) {
    if (name.is_int() && name.to_int() == key) return &value;
  }
  return nullptr;
}
const Value& Value::operator[](const std::string& key) const {
  if (const Value* found = find(key)) return *found;
  throw IndexError("the dict has no entry '" + key + "'");
}

}  // namespace teletensor
