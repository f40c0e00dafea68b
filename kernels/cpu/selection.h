// Selection: the elements that advanced indexing (x[i, :, mask]) names.
#pragma once

#include "engine/tensor.h"

namespace tt::cpu {

// A space of results, and for each point of it where the element lies:
//   x[sum of point * steps + offsets[sum of point * offset_strides]]
// Offsets are checked when they are made, in memory that is ours.
struct Selection {
  Sizes sizes;           // of the result: NumPy's rules
  Sizes steps;           // in elements of x
  Sizes offset_strides;  // in elements of `offsets`
  Tensor offsets;        // int64, contiguous

  enum Range {
    kEitherEnd,  // -1 is the last place
    kFromZero,
  };

  // `indices`: for each dimension of x, integers, a mask (over as many dimensions as it has), or
  // undefined for all of it. Throws Error (IndexError) where they do not fit x or one another.
  Selection(const Tensor& x, const Tensors& indices, Range range = kEitherEnd);
  // What `offsets` (one-dimensional) name, alone.
  explicit Selection(Tensor offsets)
      : sizes(offsets.sizes()), steps(sizes.size(), 0), offset_strides(offsets.strides()), offsets(offsets) {}
};

// The offsets, over `strides`, of mask's elements that are not 0, in row-major order.
Tensor offsets_of_true(const Tensor& mask, SizesView strides);

}  // namespace tt::cpu
