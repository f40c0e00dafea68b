// Channels-last copies of activations: what oneDNN's fastest convolutions read and write.
//
// A tensor that the user sees is N x C x space, contiguous; these transpose each image's C x space
// matrix, in registers, at memory's speed.
#pragma once

#include <cstdint>

namespace tt::cpu {

// to[n][s][c] = from[n][c][s], for elements of 2, 4 or 8 bytes. Swap channels and space for the
// way back. Uses the pool: not within a PoolLease of another thread's.
void transpose_images(const void* from, void* to, int64_t images, int64_t channels, int64_t space, int64_t item_bytes);

}  // namespace tt::cpu
