// FftSource and FftTarget: how a Fourier transform loads the points of its lines and stores the results.
#pragma once

#include "kernels/common/math/complex.h"
#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

// How the source or the target of a transform of n points is stored. kComplex: n complex numbers. kReal: n real
// numbers. kHalf: the first n / 2 + 1 complex numbers; their conjugates, in reverse order, are the other points.
enum class FftPointFormat { kComplex, kReal, kHalf };

template <typename R>
struct FftSource {
  const void* data;
  FftPointFormat end;
  int64_t stride, points;

  // Loads point `i` of the line that begins at `start`.
  TT_FUNCTION Complex<R> load(int64_t start, int64_t i) const {
    if (end == FftPointFormat::kReal) return Complex<R>(static_cast<const R*>(data)[start + i * stride]);
    const auto* numbers = static_cast<const Complex<R>*>(data) + start;
    if (end == FftPointFormat::kComplex) return numbers[i * stride];
    // The spectrum of real numbers is real at these points, so their stored imaginary parts are ignored.
    if (i == 0 || 2 * i == points) return Complex<R>(numbers[i * stride].re);
    if (2 * i < points) return numbers[i * stride];
    const Complex<R> mirrored = numbers[(points - i) * stride];
    return {mirrored.re, -mirrored.im};
  }
};

template <typename R>
struct FftTarget {
  void* data;
  FftPointFormat end;
  int64_t stride, points;
  R scale;

  TT_FUNCTION void store(int64_t start, int64_t i, Complex<R> value) const {
    if (end == FftPointFormat::kReal) {
      static_cast<R*>(data)[start + i * stride] = value.re * scale;
    } else if (end == FftPointFormat::kComplex || 2 * i <= points) {
      const bool is_real = end == FftPointFormat::kHalf && (i == 0 || 2 * i == points);  // without rounding errors
      static_cast<Complex<R>*>(data)[start + i * stride] = {value.re * scale, is_real ? R(0) : value.im * scale};
    }
  }
};

}  // namespace tt::cuda
