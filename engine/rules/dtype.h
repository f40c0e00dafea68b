// DType: the element types, and the promotion lattice over them.
//
// Pure values; safe from any thread. Linked into the engine and the client, so both sides
// reach the same result type without asking each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tt {

// The numbers travel on the wire: they are never reused or reordered.
enum class DType : uint8_t {
  kBool = 0,
  kUInt8 = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat16 = 6,
  kBFloat16 = 7,
  kFloat32 = 8,
  kFloat64 = 9,
  kComplex64 = 10,   // declared, not yet computed with
  kComplex128 = 11,  // declared, not yet computed with
};
inline constexpr int kNumDTypes = 12;

// What promotion ranks first: a higher category wins whatever the width.
enum class Category : uint8_t { kBool, kInteger, kFloating, kComplex };

inline constexpr DType kDefaultFloat = DType::kFloat32;

inline size_t item_size(DType t) {
  constexpr uint8_t kSizes[kNumDTypes] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return kSizes[static_cast<size_t>(t)];
}
std::string_view name(DType t);  // "float32"
std::optional<DType> parse_dtype(std::string_view name);
inline Category category(DType t) {
  if (t == DType::kBool) return Category::kBool;
  if (t <= DType::kInt64) return Category::kInteger;
  return t <= DType::kFloat64 ? Category::kFloating : Category::kComplex;
}
inline bool is_floating(DType t) { return category(t) == Category::kFloating; }
inline bool is_integral(DType t) { return category(t) <= Category::kInteger; }  // bool included
bool is_valid(int64_t number);  // a number from the wire names a dtype we compute with

// The least type both convert to, PyTorch's table: promote(int64, float16) is float16.
DType promote(DType a, DType b);
// `t` itself if floating, else the default float.
inline DType to_float(DType t) { return is_integral(t) ? kDefaultFloat : t; }
// Whether a result of type `from` may land in a tensor of type `to`: never down a category.
bool can_cast(DType from, DType to);

}  // namespace tt
