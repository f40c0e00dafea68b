// Layouts of new tensors: the strides that an operator's results take over from its arguments.
//
// Both sides call these through infer(), so that they agree without a message. The rules are PyTorch's.
#pragma once

#include "engine/schema/op.h"

namespace tt {

// Whether the elements fill their memory without gaps or overlaps, in any order of dimensions.
bool is_dense(SizesView sizes, SizesView strides);
// Strides with the channels (dimension 1) last. Requires 4 or 5 dimensions.
Sizes channels_last_strides(SizesView sizes);
// Whether the strides are those; those of dimensions of size 1 do not matter. False unless there are 4 or 5 dimensions.
bool is_channels_last(SizesView sizes, SizesView strides);
// Sets the strides of the results, which are contiguous before, where they follow those of the arguments:
//  - pointwise operators and the like: the arguments' strides if these are dense and equal, otherwise dense strides in
//    the order of the arguments' strides (at::TensorIterator);
//  - convolutions, pooling, norms of channels and the like: channels last if the input, or a convolution's weight, is.
void follow_arguments(const Op& op, Args args, Inference* out);

}  // namespace tt
