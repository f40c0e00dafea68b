// radix_sort: sorts integers together with their original positions.
#pragma once

#include "engine/tensor/tensor.h"
#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

// Unsigned keys, stored as int32 or int64, and the position of each (int64).
struct KeyIndexPairs {
  Tensor keys;
  Tensor indices;
};

// Sorts `items` stably by the low `bits` of their keys. Overwrites the tensors of `items`, and may return different
// tensors.
KeyIndexPairs radix_sort(const Queue& queue, const KeyIndexPairs& items, int bits);

}  // namespace tt::cuda
