// sort_key: maps an element to an unsigned integer with the same order.
//
// NaN sorts after everything else; -0 and 0 are equal.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "kernels/common/iteration/element.h"

namespace tt {

// 32 bits for elements of up to four bytes, 64 bits for larger ones.
template <typename T>
using SortKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <typename T>
[[gnu::always_inline]] constexpr SortKey<T> sort_key(T value) {
  using Key = SortKey<T>;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  if constexpr (std::is_same_v<T, Bool>) {
    return value.byte != 0;
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return sort_key(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    const Key bits = std::bit_cast<Key>(value + T(0));  // -0 becomes 0
    const Key ordered = bits & kSign ? ~bits : bits | kSign;
    return value == value ? ordered : ~Key{0};
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Key>(static_cast<std::make_signed_t<Key>>(value)) ^ kSign;
  } else {
    return value;
  }
}

}  // namespace tt
