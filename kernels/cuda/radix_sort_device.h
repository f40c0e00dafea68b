// What radix_sort.cu is made of, for nvcc: CUB's radix sort.
#pragma once

#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda/radix_sort.h"

namespace tt::cuda {

template <typename Key>
KeyedPlaces radix_sort_as(const Queue& queue, const KeyedPlaces& items, int bits) {
  const KeyedPlaces spare{empty(items.keys.sizes(), items.keys.dtype(), queue.device()),
                          empty(items.places.sizes(), items.places.dtype(), queue.device())};
  cub::DoubleBuffer<Key> keys(items.keys.data_as<Key>(), spare.keys.data_as<Key>());
  cub::DoubleBuffer<int64_t> places(items.places.data_as<int64_t>(), spare.places.data_as<int64_t>());
  const int64_t n = items.keys.numel();
  const auto stream = static_cast<cudaStream_t>(queue.stream());
  size_t bytes = 0;
  cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, places, n, 0, bits, stream);
  const Tensor room = empty({static_cast<int64_t>(bytes)}, DType::kUInt8, queue.device());
  cub::DeviceRadixSort::SortPairs(room.data(), bytes, keys, places, n, 0, bits, stream);
  runtime().check_launch();
  return {keys.selector == 0 ? items.keys : spare.keys, places.selector == 0 ? items.places : spare.places};
}

}  // namespace tt::cuda
