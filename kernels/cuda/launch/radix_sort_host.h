// Implementation of radix_sort.cu for the host's compiler.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cuda/launch/launch.h"
#include "kernels/cuda/launch/radix_sort.h"

namespace tt::cuda {

template <typename Key>
KeyIndexPairs radix_sort_as(const Queue& queue, const KeyIndexPairs& items, int bits) {
  Key* keys = items.keys.data_as<Key>();
  int64_t* indices = items.indices.data_as<int64_t>();
  const size_t n = static_cast<size_t>(items.keys.numel());
  const auto sort = [=] {
    const Key mask = static_cast<Key>(~Key{0} >> (8 * sizeof(Key) - static_cast<size_t>(bits)));
    std::vector<std::pair<Key, int64_t>> pairs(n);
    for (size_t i = 0; i < pairs.size(); ++i) pairs[i] = {keys[i], indices[i]};
    std::stable_sort(pairs.begin(), pairs.end(),
                     [mask](const auto& a, const auto& b) { return (a.first & mask) < (b.first & mask); });
    for (size_t i = 0; i < pairs.size(); ++i) {
      keys[i] = pairs[i].first;
      indices[i] = pairs[i].second;
    }
  };
  queue.add([sort](StreamHandle stream) { enqueue(stream, sort); });
  return items;
}

}  // namespace tt::cuda
