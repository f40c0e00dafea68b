// may_take_place: divides a fixed number of places (calls, sessions) among principals.
#pragma once

#include <algorithm>
#include <cstddef>

namespace tt::server {

inline constexpr size_t kPlacesPerReserve = 16;

// Whether a principal that has `own` of the `used` places may take another one. One of 16 places is for operators, and
// another one for principals that have none. Others are divided: a principal may take one while it has less than three
// times as many as are free, so that one alone has up to three quarters, and several have equal parts.
inline bool may_take_place(size_t places, size_t used, size_t own, bool is_operator = false) {
  const size_t reserve = places / kPlacesPerReserve;
  const size_t taken = std::min(places, used + (is_operator ? 0 : reserve));
  const size_t free = places - taken;
  if (own == 0) return free > 0;
  return free > reserve && own < 3 * free;
}

}  // namespace tt::server
