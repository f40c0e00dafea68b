// Indices of Tensor::index and index_put_: integers, slices, "...", None, booleans and tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "client/api/tensor.h"

namespace teletensor {
namespace indexing {

struct None_ {};
struct Ellipsis_ {};
/// A new dimension of size 1, or an absent bound of a slice.
inline constexpr None_ None{};
/// All dimensions that no other index uses.
inline constexpr Ellipsis_ Ellipsis{};

/// Elements start, start + step, ... before stop, by Python's rules.
class Slice {
 public:
  class Bound {
   public:
    Bound(None_) {}                          // NOLINT: a bound
    Bound(int64_t value) : value_(value) {}  // NOLINT
    const std::optional<int64_t>& value() const { return value_; }

   private:
    std::optional<int64_t> value_;
  };
  Slice(Bound start = None, Bound stop = None, Bound step = None)
      : start(start.value()), stop(stop.value()), step(step.value()) {}
  std::optional<int64_t> start, stop, step;
};

}  // namespace indexing
using indexing::Slice;

/// One index.
class TensorIndex {
 public:
  enum class Kind : uint8_t { kNone, kEllipsis, kInteger, kBool, kSlice, kTensor };
  TensorIndex(indexing::None_) : kind_(Kind::kNone) {}          // NOLINT: an index
  TensorIndex(indexing::Ellipsis_) : kind_(Kind::kEllipsis) {}  // NOLINT
  /// "..."; throws ValueError for another text.
  TensorIndex(const char* text);                                  // NOLINT
  TensorIndex(int64_t i) : kind_(Kind::kInteger), integer_(i) {}  // NOLINT
  TensorIndex(int i) : TensorIndex(int64_t{i}) {}                 // NOLINT
  template <std::same_as<bool> B>
  TensorIndex(B value) : kind_(Kind::kBool), integer_(value) {}                     // NOLINT
  TensorIndex(const Slice& slice) : kind_(Kind::kSlice), slice_(slice) {}           // NOLINT
  TensorIndex(Tensor tensor) : kind_(Kind::kTensor), tensor_(std::move(tensor)) {}  // NOLINT

  Kind kind() const { return kind_; }
  int64_t integer() const { return integer_; }
  const Slice& slice() const { return slice_; }
  const Tensor& tensor() const { return tensor_; }

 private:
  Kind kind_;
  int64_t integer_ = 0;
  Slice slice_;
  Tensor tensor_;
};

}  // namespace teletensor
