// Dot products of float32 rows with weights of 8 or 4 bits, and the conversion of float32 rows to 8 bits: the inner
// loops, for AVX-512 where the machine has it.
#pragma once

#include <cstdint>

namespace tt::cpu {

inline constexpr int kWeightRows = 8;          // of x, for which a weight is converted once
inline constexpr int64_t kPackedWeights = 32;  // of 4 bits in 16 bytes: byte i has those of i and 16 + i

// sums[r] = the dot product of w and row r of x, for `rows` <= kWeightRows rows of k elements.
void dot_int8(int rows, int64_t k, const float* x, const int8_t* w, float* sums);

// A row of packed 4-bit weights in groups, of which each has a scale and a zero: (q - 8) * scale + zero.
struct Int4Row {
  int64_t k, group_size;
  const uint8_t* weights;
  const float* scales;  // scales[g * step] and, of the zero, scales[g * step + 1]
  int64_t step;
};
// group_sums[r * groups + g] are the sums of x's elements per group.
void dot_int4(int rows, const Int4Row& row, const float* x, const float* group_sums, float* sums);

// Extends [*min, *max] to the range of n numbers; both become NaN if one of the numbers is.
void extend_range(int64_t n, const float* x, float* min, float* max);
// PyTorch's dynamic quantization: round(x * inverse) + zero_point, within the integers from 0 to `max`; NaN becomes 0.
void quantize_row(int64_t n, const float* x, float inverse, float zero_point, float max, uint8_t* to);

}  // namespace tt::cpu
