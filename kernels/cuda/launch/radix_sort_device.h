// Implementation of radix_sort.cu for nvcc: CUB's radix sort.
#pragma once

#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda/launch/radix_sort.h"

namespace tt::cuda {

// A callable with CUB's arguments.
template <typename Key>
struct RadixSort {
  const Key* keys;
  Key* sorted_keys;
  const int64_t* places;
  int64_t* sorted_places;
  int64_t n;
  int bits;
  void* room;
  size_t bytes;  // size of `room`
  void operator()(StreamHandle stream) const {
    size_t held = bytes;
    cub::DeviceRadixSort::SortPairs(room, held, keys, sorted_keys, places, sorted_places, n, 0, bits,
                                    static_cast<cudaStream_t>(stream));
    runtime().check_launch();
  }
};

template <typename Key>
KeyedPlaces radix_sort_as(const Queue& queue, const KeyedPlaces& items, int bits) {
  const KeyedPlaces sorted{empty(items.keys.sizes(), items.keys.dtype(), queue.device()),
                           empty(items.places.sizes(), items.places.dtype(), queue.device())};
  RadixSort<Key> sort{items.keys.data_as<const Key>(),
                      sorted.keys.data_as<Key>(),
                      items.places.data_as<const int64_t>(),
                      sorted.places.data_as<int64_t>(),
                      items.keys.numel(),
                      bits,
                      nullptr,
                      0};
  cub::DeviceRadixSort::SortPairs(nullptr, sort.bytes, sort.keys, sort.sorted_keys, sort.places, sort.sorted_places,
                                  sort.n, 0, bits);
  const Tensor room = empty({static_cast<int64_t>(sort.bytes)}, DType::kUInt8, queue.device());
  sort.room = room.data();
  queue.add(sort);
  return sorted;
}

}  // namespace tt::cuda
