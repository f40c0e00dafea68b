// int8_weights: packed copies of quantized weights, kept with the tensors that they were made of.
//
// Weights that are used twice without a write in between are packed once, as packed_weights.h describes: the copy is
// charged to the session, and freed when the tensor is freed or written to. Thread-safe.
#pragma once

#include <cstdint>

#include "engine/tensor/tensor.h"

namespace tt::cpu {

// The rows of a contiguous int8 matrix (n, k) for Int8Product::packed. An undefined tensor if a product with m rows
// does not use them, if the weights are used for the first time, or if the session has no memory for the copy.
Tensor packed_rows(const Tensor& weight, int64_t m);

// The weights of a convolution in groups, (groups * n, channels, ...), as rows of (taps, channels): group g begins at
// g * packed_weights_bytes(n, taps * channels). Undefined in the same cases.
Tensor packed_filters(const Tensor& weight, int64_t groups, int64_t m);

// (o, channels, taps) to (o, taps, channels).
void taps_first(int64_t filters, int64_t channels, int64_t taps, const int8_t* from, int8_t* to);

}  // namespace tt::cpu
