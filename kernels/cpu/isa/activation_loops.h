// Vectorised GELU, SiLU and sigmoid, with their gradients.
//
// In float, exponentials are polynomials in the loop: a call of a vector function stores all registers and loads its
// constants again for each vector. The error of a result is at most 1.5e-7 times the larger of 1 and |x|, that of a
// derivative 2.5e-7; sigmoid's is within 5 units in the last place for |x| < 4. Tails are relatively accurate
// to 1.5e-5, where 1 + erf(x) would be 0. In double, the loops compute the bodies of scalar_math.h.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/math/scalar_math.h"

namespace tt::cpu::TT_ISA {

inline constexpr float kLog2e = 1.44269504F;
// Tails of distributions are computed 2^64 times as large, so that they and their factors are not subnormal.
inline constexpr float kUp = 0x1p64F, kDown = 0x1p-64F;

// 2^(x scale + bias) for results in float's normal range; undefined for NaN. The relative error is that of x scale and
// at most 2e-9 before rounding (a minimax polynomial of 2^f for |f| <= 1/2).
TT_HOST_DEVICE float power_of_two(float x, float scale, int bias) {
  constexpr float kRound = 0x1.8p23F;  // adding it leaves the nearest integer in the lower bits
  const float rounded = x * scale + kRound;
  const float f = x * scale - (rounded - kRound);
  const float power =
      math::polynomial(f, 0.000153458118, 0.00133999312, 0.00961848896, 0.0555032878, 0.240226469, 0.693147206, 1.0);
  const uint32_t exponent = std::bit_cast<uint32_t>(rounded) + static_cast<uint32_t>(bias);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(power) + (exponent << 23));
}

// The standard normal distribution function of -t, divided by exp(-t^2 / 2): a minimax fit for t in [0, 14.5] by
// Lawson's algorithm with a relative error of 6e-9.
TT_HOST_DEVICE float normal_tail_ratio(float t) {
  return math::polynomial(t, 0.00411630653, 0.0406332258, 0.18323516, 0.438295016, 0.500000003) /
         math::polynomial(t, 0.0103179306, 0.10185884, 0.46947068, 1.20250329, 1.67447501, 1.0);
}
// |x| up to 15, where tails are 0; 15 for NaN.
TT_HOST_DEVICE float tail_argument(float x) {
  const float size = math::abs(x);
  return math::where(size < 15.0F, size, 15.0F);
}
// exp(-t^2 / 2) 2^64.
TT_HOST_DEVICE float scaled_bell(float t) { return power_of_two(t * t, -0.5F * kLog2e, 64); }

TT_HOST_DEVICE float gelu_of(float x) {
  const float t = tail_argument(x);
  const float positive = x - math::where(x < 0, x, 0.0F);  // NaN for -inf, as in PyTorch
  return positive - t * scaled_bell(t) * normal_tail_ratio(t) * kDown;
}
TT_HOST_DEVICE float gelu_derivative_of(float x) {
  const float t = tail_argument(x);
  const float tail = scaled_bell(t) * (normal_tail_ratio(t) - t * 0.398942280F);  // 1 / sqrt(2 pi)
  return math::where(x < 0, 0.0F, 1.0F) + tail * math::where(x < 0, kDown, -kDown) + (x - x);
}

// sigmoid(x) and sigmoid(-x), each without cancellation.
struct Logistic {
  float value, complement;
};
TT_HOST_DEVICE Logistic logistic(float x) {
  constexpr float kMost = 42.0F;                        // from here on, value + complement rounds to value
  const float most = math::where(x < kMost, x, kMost);  // also for NaN
  const float power = power_of_two(math::where(most > -110.0F, most, -110.0F), -kLog2e, -64);
  const float inverse = 1 / (kDown + power);
  return {kDown * inverse, math::where(x < kMost, power * inverse, 0.0F)};
}
TT_HOST_DEVICE float sigmoid_of(float x) { return math::where(x == x, logistic(x).value, x); }

// sqrt(8 / pi) (x + 0.044715 x^3), of which GELU's approximation is x times the sigmoid, and its derivative.
TT_HOST_DEVICE float gelu_tanh_argument(float x) { return x * (1.59576912F + 0.0713548163F * (x * x)); }
TT_HOST_DEVICE float gelu_tanh_slope(float x) { return 1.59576912F + 0.214064449F * (x * x); }

// out[i] = f(in[0][i]).
template <typename T, typename F>
void loop_of_values(int64_t length, const T* const* in, T* out, F f) {
  const T* x = in[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < length; ++i) out[i] = f(x[i]);
}
// out[i] = in[0][i] f(in[1][i]).
template <typename T, typename F>
void loop_of_gradients(int64_t length, const T* const* in, T* out, F f) {
  const T *grad = in[0], *x = in[1];
#pragma GCC ivdep
  for (int64_t i = 0; i < length; ++i) out[i] = grad[i] * f(x[i]);
}

template <typename T>
void loop_of_sigmoid(int64_t length, const T* const* in, T* out) {
  loop_of_values(length, in, out, [](T x) {
    if constexpr (sizeof(T) == 4) {
      return sigmoid_of(x);
    } else {
      return math::sigmoid(x);
    }
  });
}
template <typename T>
void loop_of_operator_silu(int64_t length, const T* const* in, T* out) {
  loop_of_values(length, in, out, [](T x) {
    if constexpr (sizeof(T) == 4) {
      return x * sigmoid_of(x);
    } else {
      return x / (1 + math::exp(-x));
    }
  });
}
template <typename T>
void loop_of_operator_silu_backward(int64_t length, const T* const* in, T* out) {
  loop_of_gradients(length, in, out, [](T x) {
    if constexpr (sizeof(T) == 4) {
      const Logistic s = logistic(x);
      return s.value + x * (s.value * s.complement) + (x - x);
    } else {
      return math::silu_derivative(x);
    }
  });
}
template <typename T>
void loop_of_operator_gelu_erf(int64_t length, const T* const* in, T* out) {
  loop_of_values(length, in, out, [](T x) {
    if constexpr (sizeof(T) == 4) {
      return gelu_of(x);
    } else {
      return x * math::normal_cdf(x, math::exp(T(-0.5) * x * x));
    }
  });
}
template <typename T>
void loop_of_operator_gelu_erf_backward(int64_t length, const T* const* in, T* out) {
  loop_of_gradients(length, in, out, [](T x) {
    if constexpr (sizeof(T) == 4) {
      return gelu_derivative_of(x);
    } else {
      return math::gelu_derivative(x, math::exp(T(-0.5) * x * x));
    }
  });
}
template <typename T>
void loop_of_operator_gelu_tanh(int64_t length, const T* const* in, T* out) {
  loop_of_values(length, in, out, [](T x) {
    if constexpr (sizeof(T) == 4) {
      return x * sigmoid_of(gelu_tanh_argument(x));
    } else {
      return T(0.5) * x * (1 + math::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
    }
  });
}
template <typename T>
void loop_of_operator_gelu_tanh_backward(int64_t length, const T* const* in, T* out) {
  loop_of_gradients(length, in, out, [](T x) {
    if constexpr (sizeof(T) == 4) {
      const Logistic s = logistic(gelu_tanh_argument(x));
      return s.value + x * (s.value * s.complement) * gelu_tanh_slope(x) + (x - x);
    } else {
      return math::gelu_tanh_derivative(x);
    }
  });
}

}  // namespace tt::cpu::TT_ISA
