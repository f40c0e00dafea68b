// DType: the element types and their promotion rules.
//
// Pure functions; thread-safe. Linked into the engine and the client, so both compute the same result type without
// communication.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tt {

// The numbers are part of the wire protocol: never reuse or reorder them.
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
  kComplex64 = 10,
  kComplex128 = 11,
  kUInt16 = 12,
  kUInt32 = 13,
  kUInt64 = 14,
  kFloat8E4m3fn = 15,
  kFloat8E5m2 = 16,
};
inline constexpr int kNumDTypes = 17;

// Ranks in promotion: the higher category wins regardless of width.
enum class Category : uint8_t { kBool, kInteger, kFloating, kComplex };

inline constexpr DType kDefaultFloat = DType::kFloat32;

inline size_t item_size(DType t) {
  constexpr uint8_t kSizes[kNumDTypes] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 2, 4, 8, 1, 1};
  return kSizes[static_cast<size_t>(t)];
}
std::string_view name(DType t);              // "float32"
std::string_view cpp_type_name(DType t);     // the C++ name, used in some of PyTorch's messages: "to have dtype float"
std::string_view scalar_type_name(DType t);  // PyTorch's name in messages: "not implemented for 'Float'"
std::optional<DType> parse_dtype(std::string_view name);
inline Category category(DType t) {
  using enum Category;
  constexpr Category kCategories[kNumDTypes] = {kBool,     kInteger,  kInteger,  kInteger,  kInteger, kInteger,
                                                kFloating, kFloating, kFloating, kFloating, kComplex, kComplex,
                                                kInteger,  kInteger,  kInteger,  kFloating, kFloating};
  return kCategories[static_cast<size_t>(t)];
}
inline bool is_floating(DType t) { return category(t) == Category::kFloating; }
// The two 16-bit floating types; kernels compute in float32 and round once, at the end.
inline bool is_reduced_floating(DType t) { return t == DType::kFloat16 || t == DType::kBFloat16; }
// Storage-only floating types: operators reject them unless declared `takes_float8`.
inline bool is_float8(DType t) { return t >= DType::kFloat8E4m3fn; }
inline bool is_complex(DType t) { return category(t) == Category::kComplex; }
inline bool is_integral(DType t) { return category(t) <= Category::kInteger; }  // including bool
inline bool is_unsigned(DType t) {                                              // excluding bool
  return t == DType::kUInt8 || (t >= DType::kUInt16 && t <= DType::kUInt64);
}
inline bool has_gradients(DType t) { return category(t) >= Category::kFloating; }
inline bool is_valid(int64_t number) { return number >= 0 && number < kNumDTypes; }  // for a number from the wire

// The smallest type to which both convert, by PyTorch's table: promote(int64, float16) is float16. Throws Error
// (RuntimeError), as PyTorch does, on uint16, uint32 or uint64 with another type that is not floating, and on 8-bit
// floating types with any other type.
DType promote(DType a, DType b);
// Return the real dtype of a complex dtype's parts, and the complex dtype whose parts have the given real dtype. Both
// return `t` if there is nothing to convert. to_complex throws Error (RuntimeError) on 8-bit floating types, which have
// no complex type.
DType to_real(DType t);
DType to_complex(DType t);
// Returns `t` if it is floating or complex, otherwise the default float.
inline DType to_float(DType t) { return is_integral(t) ? kDefaultFloat : t; }
// Whether a result of type `from` may be written to an out tensor of type `to`: the category must not decrease.
bool can_cast(DType from, DType to);

}  // namespace tt
