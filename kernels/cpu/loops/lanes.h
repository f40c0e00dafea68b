// join_lanes: what many partial results come to. In a tree: one after the other they would wait for each other.
#pragma once

namespace tt::cpu {

// Requires a power of two of lanes, which it overwrites.
template <int kLanes, typename T, typename Join>
[[gnu::always_inline]] inline T join_lanes(T* lanes, Join join) {
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) lanes[j] = join(lanes[j], lanes[j + half]);
  }
  return lanes[0];
}

}  // namespace tt::cpu
