// radix_sort: sorts integers together with their original positions.
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

// `keys` contains unsigned integers, stored as int32 or int64. `indices` contains the original position of each key, as
// int64.
struct KeyIndexPairs {
  Tensor keys;
  Tensor indices;
};

// Sorts `items` stably by the low `bits` bits of their keys. May overwrite the tensors of `items`, and may return
// different tensors.
KeyIndexPairs radix_sort(const Queue& queue, const KeyIndexPairs& items, int bits);

}  // namespace tt::cuda
