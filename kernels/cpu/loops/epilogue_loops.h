// What follows a convolution in the operator fused_convolution: normalisation, a sum and an activation, in one pass.
//
// Each step computes what the operator of its name computes, in the same order, so that the bits are those of the
// single calls.
#pragma once

#include <cstdint>

namespace tt::cpu {

enum class Activation { kNone, kRelu, kRelu6, kHardswish };

// By channel; null without a norm.
template <typename T>
struct ChannelNorm {
  const T *center = nullptr, *scale = nullptr, *shift = nullptr;
};

// y = (x - center) * scale + shift, of `rows` rows with one element of each of n channels.
void normalize_rows(int64_t rows, int64_t n, const ChannelNorm<float>& norm, const float* x, float* y);
void normalize_rows(int64_t rows, int64_t n, const ChannelNorm<double>& norm, const double* x, double* y);

// y = activation((y - center) * scale + shift + added), in place; `added` may be null.
// Of one channel: `n` elements.
void finish_channel(int64_t n, const ChannelNorm<float>& norm, int64_t channel, const float* added,
                    Activation activation, float* y);
void finish_channel(int64_t n, const ChannelNorm<double>& norm, int64_t channel, const double* added,
                    Activation activation, double* y);
// Of `rows` rows with one element of each of n channels.
void finish_rows(int64_t rows, int64_t n, const ChannelNorm<float>& norm, const float* added, Activation activation,
                 float* y);
void finish_rows(int64_t rows, int64_t n, const ChannelNorm<double>& norm, const double* added, Activation activation,
                 double* y);

}  // namespace tt::cpu
