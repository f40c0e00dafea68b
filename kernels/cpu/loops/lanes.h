// join_lanes: combines partial results in a tree, whose dependency chains are shorter than a sequential loop's.
#pragma once

namespace tt::cpu {

// Requires that the number of lanes is a power of two. Overwrites the lanes.
template <int kLanes, typename T, typename Join>
[[gnu::always_inline]] inline T join_lanes(T* lanes, Join join) {
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) lanes[j] = join(lanes[j], lanes[j + half]);
  }
  return lanes[0];
}

}  // namespace tt::cpu
