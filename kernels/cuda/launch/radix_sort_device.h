// Implementation of radix_sort.cu for nvcc: CUB's radix sort.
#pragma once

#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda/launch/radix_sort.h"

namespace tt::cuda {

// Calls CUB's radix sort with the stored arguments.
template <typename Key>
struct RadixSort {
  const Key* keys;
  Key* sorted_keys;
  const int64_t* indices;
  int64_t* sorted_indices;
  int64_t n;
  int bits;
  void* temp_storage;
  size_t bytes;  // size of `temp_storage`
  void operator()(StreamHandle stream) const {
    size_t held = bytes;
    cub::DeviceRadixSort::SortPairs(temp_storage, held, keys, sorted_keys, indices, sorted_indices, n, 0, bits,
                                    static_cast<cudaStream_t>(stream));
    runtime().check_launch();
  }
};

template <typename Key>
KeyIndexPairs radix_sort_as(const Queue& queue, const KeyIndexPairs& items, int bits) {
  const KeyIndexPairs sorted{empty(items.keys.sizes(), items.keys.dtype(), queue.device()),
                             empty(items.indices.sizes(), items.indices.dtype(), queue.device())};
  RadixSort<Key> sort{items.keys.data_as<const Key>(),
                      sorted.keys.data_as<Key>(),
                      items.indices.data_as<const int64_t>(),
                      sorted.indices.data_as<int64_t>(),
                      items.keys.numel(),
                      bits,
                      nullptr,
                      0};
  cub::DeviceRadixSort::SortPairs(nullptr, sort.bytes, sort.keys, sort.sorted_keys, sort.indices, sort.sorted_indices,
                                  sort.n, 0, bits);
  const Tensor temp_storage = empty({static_cast<int64_t>(sort.bytes)}, DType::kUInt8, queue.device());
  sort.temp_storage = temp_storage.data();
  queue.add(sort);
  return sorted;
}

}  // namespace tt::cuda
