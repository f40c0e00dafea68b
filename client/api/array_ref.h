// ArrayRef: a list of sizes, numbers or tensors as an argument. Does not own its elements: valid until the end of the
// full expression that makes it, unless the elements live longer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "engine/schema/arg.h"

namespace teletensor {

/// A view of an array of T, as `c10::ArrayRef`.
template <typename T>
class ArrayRef {
 public:
  ArrayRef() = default;
  ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  ArrayRef(std::initializer_list<T> list) : ArrayRef(absl::Span<const T>(list)) {}  // NOLINT: a list is an argument
  ArrayRef(const std::vector<T>& list) : data_(list.data()), size_(list.size()) {}  // NOLINT
  template <size_t N>
  ArrayRef(const std::array<T, N>& list) : data_(list.data()), size_(N) {}        // NOLINT
  ArrayRef(absl::Span<const T> list) : data_(list.data()), size_(list.size()) {}  // NOLINT
  ArrayRef(const T& one) : data_(&one), size_(1) {}                               // NOLINT

  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T& operator[](size_t i) const { return data_[i]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }
  std::vector<T> vec() const { return {begin(), end()}; }
  /// The elements as an operator's argument.
  tt::Arg arg() const { return tt::Arg(absl::Span<const T>(data_, size_)); }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

/// A list of integers. Stores a single integer itself.
class IntArrayRef {
 public:
  IntArrayRef() = default;
  IntArrayRef(const int64_t* data, size_t size) : data_(data), size_(size) {}
  IntArrayRef(std::initializer_list<int64_t> list) : IntArrayRef(absl::Span<const int64_t>(list)) {}  // NOLINT
  IntArrayRef(const std::vector<int64_t>& list) : data_(list.data()), size_(list.size()) {}           // NOLINT
  template <size_t N>
  IntArrayRef(const std::array<int64_t, N>& list) : data_(list.data()), size_(N) {}        // NOLINT
  IntArrayRef(absl::Span<const int64_t> list) : data_(list.data()), size_(list.size()) {}  // NOLINT
  IntArrayRef(const tt::Sizes& list) : data_(list.data()), size_(list.size()) {}           // NOLINT
  IntArrayRef(int64_t one) : size_(1), one_(one), is_one_(true) {}                         // NOLINT

  const int64_t* data() const { return is_one_ ? &one_ : data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size_; }
  int64_t operator[](size_t i) const { return data()[i]; }
  int64_t front() const { return data()[0]; }
  int64_t back() const { return data()[size_ - 1]; }
  std::vector<int64_t> vec() const { return {begin(), end()}; }
  absl::Span<const int64_t> span() const { return {data(), size_}; }
  /// The integers as an operator's argument, valid as long as this object.
  tt::Arg arg() const { return tt::Arg(span()); }
  friend bool operator==(const IntArrayRef& a, const IntArrayRef& b) { return a.span() == b.span(); }

 private:
  const int64_t* data_ = nullptr;
  size_t size_ = 0;
  int64_t one_ = 0;
  bool is_one_ = false;
};
/// Prints "[2, 3]".
std::ostream& operator<<(std::ostream& stream, const IntArrayRef& list);

/// A list of integers, or nothing.
class OptionalIntArrayRef {
 public:
  OptionalIntArrayRef() = default;
  OptionalIntArrayRef(std::nullopt_t) {}                                                       // NOLINT
  OptionalIntArrayRef(std::initializer_list<int64_t> list) : list_(list), has_value_(true) {}  // NOLINT
  OptionalIntArrayRef(const std::vector<int64_t>& list) : list_(list), has_value_(true) {}     // NOLINT
  OptionalIntArrayRef(IntArrayRef list) : list_(list), has_value_(true) {}                     // NOLINT
  OptionalIntArrayRef(int64_t one) : list_(one), has_value_(true) {}                           // NOLINT

  bool has_value() const { return has_value_; }
  const IntArrayRef& value() const { return list_; }
  tt::Arg arg() const { return has_value_ ? list_.arg() : tt::Arg(); }

 private:
  IntArrayRef list_;
  bool has_value_ = false;
};

class Tensor;
/// A list of tensors.
using TensorList = ArrayRef<Tensor>;

}  // namespace teletensor
