// Loops of normalisation layers over contiguous elements.
//
// Sums of floats are accumulated in double across chunks, so that a mean over millions of elements stays accurate.
#pragma once

#include <cstdint>

namespace tt::cpu::rows {

// The minimum number of elements per core: about 10 us of normalisation.
inline constexpr int64_t kGrain = 1 << 16;

struct Sums {
  double first;
  double second;
};

double sum(int64_t n, const float* x);
double sum(int64_t n, const double* x);
// The sum of (x - center)^2.
double squares(int64_t n, const float* x, float center);
double squares(int64_t n, const double* x, double center);
// The sums of g and of g * (x - center).
Sums sum_and_dot(int64_t n, const float* g, const float* x, float center);
Sums sum_and_dot(int64_t n, const double* g, const double* x, double center);
// The sums of g * w and of g * w * (x - center). A null w means ones.
Sums weighted_sum_and_dot(int64_t n, const float* g, const float* w, const float* x, float center);
Sums weighted_sum_and_dot(int64_t n, const double* g, const double* w, const double* x, double center);

// y = a * (x - center) + b.
void scale_shift(int64_t n, const float* x, float center, float a, float b, float* y);
void scale_shift(int64_t n, const double* x, double center, double a, double b, double* y);
// y = (x - center) * scale * w + b. A null w means ones, a null b zeros.
void normalize(int64_t n, const float* x, float center, float scale, const float* w, const float* b, float* y);
void normalize(int64_t n, const double* x, double center, double scale, const double* w, const double* b, double* y);
// dx = a * g * w + b * (x - center) + c. A null w means ones.
void combine(int64_t n, const float* g, const float* w, const float* x, float center, float a, float b, float c,
             float* dx);
void combine(int64_t n, const double* g, const double* w, const double* x, double center, double a, double b, double c,
             double* dx);
// dw += g * (x - center) * scale and db += g; either may be null.
void add_affine_gradients(int64_t n, const float* g, const float* x, float center, float scale, float* dw, float* db);
void add_affine_gradients(int64_t n, const double* g, const double* x, double center, double scale, double* dw,
                          double* db);

}  // namespace tt::cpu::rows
