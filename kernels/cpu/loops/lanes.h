// Vectors that every instruction set's loops can use, and join_lanes(), which combines partial results in a tree, whose
// dependency chains are shorter than a sequential loop's.
#pragma once

#include <cstdint>

// The vector type may be wider than the baseline's registers.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace tt::cpu {

// A vector of 64 bytes, in as many registers as the clone needs, and one at any address. A reference to Memory must not
// be bound to one to Vector, as the parameters of functions and of templates are: compilers may then use instructions
// that require an aligned address.
template <typename T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(64)));
  typedef T Memory __attribute__((vector_size(64), aligned(alignof(T)), may_alias));
  static constexpr int64_t kCount = 64 / sizeof(T);
};

template <typename T>
[[gnu::always_inline]] inline typename Lanes<T>::Memory& lanes_at(T* p) {
  return *reinterpret_cast<typename Lanes<T>::Memory*>(p);
}
template <typename T>
[[gnu::always_inline]] inline const typename Lanes<T>::Memory& lanes_at(const T* p) {
  return *reinterpret_cast<const typename Lanes<T>::Memory*>(p);
}

// Requires that the number of lanes is a power of two. Overwrites the lanes.
template <int kLanes, typename T, typename Join>
[[gnu::always_inline]] inline T join_lanes(T* lanes, Join join) {
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) lanes[j] = join(lanes[j], lanes[j + half]);
  }
  return lanes[0];
}

}  // namespace tt::cpu
