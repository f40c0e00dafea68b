// radix_sort: integers in order, each with the place that it came from.
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

// Unsigned keys, as tensors of int32 or int64 hold them, and of each its place (int64).
struct KeyedPlaces {
  Tensor keys;
  Tensor places;
};

// `items` by the low `bits` of their keys, equal ones as they were. May give other tensors than it got, whose elements
// are lost.
KeyedPlaces radix_sort(const Queue& queue, const KeyedPlaces& items, int bits);

}  // namespace tt::cuda
