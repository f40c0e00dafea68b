// Blocked products of float32 rows with weights of 8 or 4 bits, with AVX-512: a panel of weights is converted to
// float32 in the order in which the products read it, then multiplied with all rows.
#pragma once

#include <cstdint>

#include "kernels/cpu/quantized/weight_dot.h"

namespace tt::cpu {

// out[i * n + j] = the dot product of row i of x, which has k elements, and row j of the weight, multiplied by
// scales[j]. Uses the thread pool; sums do not depend on the number of threads. Requires AVX-512, and k > 0.
void multiply_int8(int64_t m, int64_t n, int64_t k, const float* x, const int8_t* w, const float* scales, float* out);
// The same with packed weights of 4 bits. `first` is the weight's first row; the scale and zero of row j are 2 * j
// behind its own.
void multiply_int4(int64_t m, int64_t n, const Int4Row& first, const float* x, float* out);

}  // namespace tt::cpu
