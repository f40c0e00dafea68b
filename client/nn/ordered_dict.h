// OrderedDict: named values in the order of their insertion, as libtorch's.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/api/errors.h"

namespace teletensor {

/// Maps names to values. Lookup takes O(n).
template <typename T>
class OrderedDict {
 public:
  /// An entry; `auto& [name, value]` works too.
  struct Item : std::pair<std::string, T> {
    using std::pair<std::string, T>::pair;
    const std::string& key() const { return this->first; }
    T& value() { return this->second; }
    const T& value() const { return this->second; }
    T& operator*() { return this->second; }
    const T& operator*() const { return this->second; }
  };

  OrderedDict() = default;
  OrderedDict(std::initializer_list<Item> items) {
    for (const Item& item : items) insert(item.key(), item.value());
  }
  size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  const Item& operator[](size_t i) const { return items_.at(i); }
  const std::vector<Item>& items() const { return items_; }

  /// Null if there is no such name.
  T* find(const std::string& key) {
    for (Item& item : items_) {
      if (item.key() == key) return &item.value();
    }
    return nullptr;
  }
  const T* find(const std::string& key) const { return const_cast<OrderedDict*>(this)->find(key); }
  bool contains(const std::string& key) const { return find(key) != nullptr; }
  /// Throws IndexError if there is no such name.
  T& operator[](const std::string& key) {
    if (T* found = find(key)) return *found;
    throw IndexError("no entry is named '" + key + "'");
  }
  const T& operator[](const std::string& key) const { return (*const_cast<OrderedDict*>(this))[key]; }
  /// Throws ValueError if the name exists.
  T& insert(std::string key, T value) {
    if (contains(key)) throw ValueError("an entry is already named '" + key + "'");
    items_.push_back(Item(std::move(key), std::move(value)));
    return items_.back().value();
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> keys;
    keys.reserve(size());
    for (const Item& item : items_) keys.push_back(item.key());
    return keys;
  }
  std::vector<T> values() const {
    std::vector<T> values;
    values.reserve(size());
    for (const Item& item : items_) values.push_back(item.value());
    return values;
  }

 private:
  std::vector<Item> items_;
};

}  // namespace teletensor
