// Complex: a complex number as stored in tensors, with its arithmetic.
//
// Computes as PyTorch's vectorised loops do: a product is the four real products, without the corrections for
// infinities that the C standard requires; a quotient is scaled, so that squares neither overflow nor underflow.
// Everything is inlined (scalar_math.h explains why), and CUDA compiles the same source.
#pragma once

#include <type_traits>

#ifdef __CUDACC__
#define TT_COMPLEX __host__ __device__ __forceinline__ constexpr
#else
#define TT_COMPLEX __attribute__((always_inline)) inline constexpr
#endif

namespace tt {

template <typename R>
struct Complex {
  R re;
  R im;

  Complex() = default;  // uninitialised, so that arrays need not be filled first
  TT_COMPLEX Complex(R real, R imaginary) : re(real), im(imaginary) {}
  template <typename V>
  requires std::is_arithmetic_v<V> TT_COMPLEX Complex(V real)
      : re(static_cast<R>(real)), im(0) {}  // NOLINT: real numbers convert implicitly
  template <typename S>
  TT_COMPLEX explicit Complex(Complex<S> other) : re(static_cast<R>(other.re)), im(static_cast<R>(other.im)) {}

  friend TT_COMPLEX Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend TT_COMPLEX Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  friend TT_COMPLEX Complex operator-(Complex a) { return {-a.re, -a.im}; }
  friend TT_COMPLEX Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  friend TT_COMPLEX Complex operator/(Complex a, Complex b) {
    // Divides both parts of b by the larger one, so that their squares stay in range.
    const R x = b.re < 0 ? -b.re : b.re, y = b.im < 0 ? -b.im : b.im;
    const R scale = x > y ? x : y;
    if (!(scale > 0)) return {a.re / x, a.im / x};  // b is zero or NaN
    const R c = b.re / scale, d = b.im / scale, norm = c * c + d * d;
    return {(a.re * c + a.im * d) / norm / scale, (a.im * c - a.re * d) / norm / scale};
  }
  friend TT_COMPLEX bool operator==(Complex a, Complex b) { return (a.re == b.re) & (a.im == b.im); }
  TT_COMPLEX Complex& operator+=(Complex b) { return *this = *this + b; }
  TT_COMPLEX Complex& operator-=(Complex b) { return *this = *this - b; }
  TT_COMPLEX Complex& operator*=(Complex b) { return *this = *this * b; }
};

template <typename T>
inline constexpr bool is_complex_v = false;
template <typename R>
inline constexpr bool is_complex_v<Complex<R>> = true;

// The type of a number's real and imaginary parts; for a real type, the type itself.
template <typename T>
struct RealOf {
  using type = T;
};
template <typename R>
struct RealOf<Complex<R>> {
  using type = R;
};
template <typename T>
using real_of_t = typename RealOf<T>::type;

}  // namespace tt
