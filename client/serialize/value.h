// Value: what a `.pt` file contains: tensors, numbers, strings, lists and dicts of these.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/api/errors.h"
#include "client/api/tensor.h"

namespace teletensor {

/// A value of one of Python's types None, bool, int, float, str, list (and tuple), dict, or a tensor.
class Value {
 public:
  using List = std::vector<Value>;
  using Dict = std::vector<std::pair<Value, Value>>;  // in order; keys are strings or integers

  Value() = default;  ///< None
  template <std::same_as<bool> B>
  Value(B value) : value_(value) {}                       // NOLINT: a value
  Value(int value) : value_(int64_t{value}) {}            // NOLINT
  Value(int64_t value) : value_(value) {}                 // NOLINT
  Value(double value) : value_(value) {}                  // NOLINT
  Value(const char* text) : value_(std::string(text)) {}  // NOLINT
  Value(std::string text) : value_(std::move(text)) {}    // NOLINT
  Value(Tensor tensor) : value_(std::move(tensor)) {}     // NOLINT
  Value(List list) : value_(std::move(list)) {}           // NOLINT
  Value(Dict dict) : value_(std::move(dict)) {}           // NOLINT

  bool is_none() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<int64_t>(value_); }
  bool is_double() const { return std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_tensor() const { return std::holds_alternative<Tensor>(value_); }
  bool is_list() const { return std::holds_alternative<List>(value_); }
  bool is_dict() const { return std::holds_alternative<Dict>(value_); }
  /// Throw TypeError for a value of another type.
  bool to_bool() const { return get<bool>("a bool"); }
  int64_t to_int() const { return get<int64_t>("an int"); }
  double to_double() const { return is_int() ? static_cast<double>(to_int()) : get<double>("a float"); }
  const std::string& to_string() const { return get<std::string>("a str"); }
  const Tensor& to_tensor() const { return get<Tensor>("a tensor"); }
  const List& to_list() const { return get<List>("a list"); }
  const Dict& to_dict() const { return get<Dict>("a dict"); }
  List& to_list() { return const_cast<List&>(std::as_const(*this).to_list()); }
  Dict& to_dict() { return const_cast<Dict&>(std::as_const(*this).to_dict()); }

  /// The entry of a dict; null if there is none.
  const Value* find(const std::string& key) const;
  const Value* find(int64_t key) const;
  /// Throws IndexError if the dict has no such entry.
  const Value& operator[](const std::string& key) const;

 private:
  template <typename T>
  const T& get(const char* expected) const {
    if (const T* value = std::get_if<T>(&value_)) return *value;
    throw TypeError(std::string("expected ") + expected + ", got " + type_name());
  }
  const char* type_name() const;
  std::variant<std::monostate, bool, int64_t, double, std::string, Tensor, List, Dict> value_;
};

}  // namespace teletensor
