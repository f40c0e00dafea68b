// The loops of softmax and log_softmax, over rows that are contiguous and over columns of a block.
#pragma once

#include <cstdint>

namespace tt::cpu {

// `count` vectors of n elements. Element i of vector j is at i * stride + j (columns), or, where
// stride is 0, at j * n + i (rows). Forward reads x; backward reads the result and its gradient.
struct Vectors {
  int64_t n;
  int64_t count;
  int64_t stride;
};

void softmax_vectors(const Vectors& v, bool log, const float* x, float* y);
void softmax_vectors(const Vectors& v, bool log, const double* x, double* y);
void softmax_backward_vectors(const Vectors& v, bool log, const float* g, const float* y, float* dx);
void softmax_backward_vectors(const Vectors& v, bool log, const double* g, const double* y, double* dx);

}  // namespace tt::cpu
