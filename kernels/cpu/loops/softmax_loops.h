// Loops of softmax, log_softmax and cross entropy, over contiguous rows and over columns of a block.
#pragma once

#include <cstdint>

namespace tt::cpu {

// `count` vectors of n elements. Element i of vector j is at i * stride + j (columns) or, if stride is 0, at j * n +
// i (rows). The forward pass reads x; the backward pass reads the result and its gradient.
struct Vectors {
  int64_t n;
  int64_t count;
  int64_t stride;
};

void softmax_vectors(const Vectors& v, bool log, const float* x, float* y);
void softmax_vectors(const Vectors& v, bool log, const double* x, double* y);
void softmax_backward_vectors(const Vectors& v, bool log, const float* g, const float* y, float* dx);
void softmax_backward_vectors(const Vectors& v, bool log, const double* g, const double* y, double* dx);

// The largest element of each vector, and the logarithm of the sum of exp(x - largest).
void log_sums(const Vectors& v, const float* x, float* largest, float* sums);
void log_sums(const Vectors& v, const double* x, double* largest, double* sums);
// y = scale * softmax(x), computed from the results of log_sums(), with one scale per vector.
void scaled_softmax(const Vectors& v, const float* x, const float* largest, const float* sums, const float* scales,
                    float* y);
void scaled_softmax(const Vectors& v, const double* x, const double* largest, const double* sums, const double* scales,
                    double* y);
// losses = sum of each * weights * -log_softmax(x), computed from the results of log_sums(), with one weight per
// element of a vector; 1 if `weights` is null. Sums of many classes are as accurate as those of few, and finite if the
// result is.
void uniform_losses(const Vectors& v, const float* x, const float* largest, const float* sums, const float* weights,
                    double each, double* losses);
void uniform_losses(const Vectors& v, const double* x, const double* largest, const double* sums, const double* weights,
                    double each, double* losses);
// y = scale * softmax(x) - rate * weights: scaled_softmax() with a second factor per vector.
void smoothed_softmax(const Vectors& v, const float* x, const float* largest, const float* sums, const float* scales,
                      const float* rates, const float* weights, float* y);
void smoothed_softmax(const Vectors& v, const double* x, const double* largest, const double* sums,
                      const double* scales, const double* rates, const double* weights, double* y);

}  // namespace tt::cpu
