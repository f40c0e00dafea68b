// Vectorised orthogonal polynomials: the recurrences of special_math.h on a vector of elements with different degrees.
//
// An element whose degree is reached keeps its value while the others of its vector go on, so that a vector takes as
// many steps as its highest degree.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/common/math/special_math.h"
#include "kernels/cpu/iteration/block.h"

namespace tt::cpu::TT_ISA {

#if defined(__AVX512F__)
inline constexpr int kDoubles = 8;
#elif defined(__AVX2__)
inline constexpr int kDoubles = 4;
#else
inline constexpr int kDoubles = 2;
#endif
typedef double Doubles __attribute__((vector_size(kDoubles * sizeof(double))));
typedef int64_t Integers __attribute__((vector_size(kDoubles * sizeof(double))));

// Maps from an operator's first input to the argument of the polynomial, computed in the input's type.
inline constexpr auto kSame = [](auto x) { return x; };
inline constexpr auto kShifted = [](auto x) { return 2 * x - 1; };

template <typename T, typename Map>
TT_HOST_DEVICE Doubles load_doubles(const T* from, Map map) {
  typedef T Elements __attribute__((vector_size(kDoubles * sizeof(T))));
  Elements elements;
  std::memcpy(&elements, from, sizeof(elements));
  elements = map(elements);
  return __builtin_convertvector(elements, Doubles);
}
template <typename T>
TT_HOST_DEVICE void store_doubles(Doubles values, T* to) {
  typedef T Elements __attribute__((vector_size(kDoubles * sizeof(T))));
  const Elements elements = __builtin_convertvector(values, Elements);
  std::memcpy(to, &elements, sizeof(elements));
}

// Whether a bit of any element is set.
TT_HOST_DEVICE bool any(Integers bits) {
  int64_t all = 0;
  for (int i = 0; i < kDoubles; ++i) all |= bits[i];
  return all != 0;
}

// The degree as an integer; 0 for degrees whose polynomial is a constant (degree_limit).
TT_HOST_DEVICE Doubles degrees_of(Doubles degree, Integers* constant) {
  *constant = ~((degree > -1) & (degree < 1000001));
  return *constant ? Doubles{} : __builtin_convertvector(__builtin_convertvector(degree, Integers), Doubles);
}

// Replaces the values of elements whose polynomial is a constant.
TT_HOST_DEVICE Doubles with_constants(Doubles value, Doubles degree, Integers constant) {
  return constant ? (degree < 0 ? Doubles{} : Doubles{} + math::kNan<double>) : value;
}

// Applies step(k, value, before) for k = first, first + 1, ... below each element's degree. Stops early if all elements
// that go on are NaN.
template <typename Step>
TT_HOST_DEVICE Doubles recur(double first, Doubles degree, Doubles before, Doubles value, Step step) {
  constexpr int kRound = 64;  // steps between two tests for NaN
  for (double k = first;;) {
    for (int i = 0; i < kRound; ++i, ++k) {
      const Integers goes_on = k < degree;
      if (!any(goes_on)) return value;
      const Doubles next = step(k, value, before);
      before = goes_on ? value : before;
      value = goes_on ? next : value;
    }
    if (!any((k < degree) & (value == value))) return value;
  }
}

template <typename T, typename Step>
TT_HOST_DEVICE void loop_of_recurrence(int64_t length, const T* const* in, T* out, Step step) {
  for (int64_t i = 0; i < length; i += kDoubles) {
    const Doubles x = load_doubles(in[0] + i, kSame), given = load_doubles(in[1] + i, kSame);
    Integers constant;
    const Doubles degree = degrees_of(given, &constant);
    const Doubles value = recur(0, degree, Doubles{}, Doubles{} + 1,
                                [&](double k, Doubles value, Doubles before) { return step(x, k, value, before); });
    store_doubles(with_constants(value, given, constant), out + i);
  }
}
template <typename T>
void loop_of_hermite_polynomial_h(int64_t length, const T* const* in, T* out) {
  loop_of_recurrence(length, in, out,
                     [](Doubles x, double k, Doubles value, Doubles before) { return 2 * x * value - 2 * k * before; });
}
template <typename T>
void loop_of_hermite_polynomial_he(int64_t length, const T* const* in, T* out) {
  loop_of_recurrence(length, in, out,
                     [](Doubles x, double k, Doubles value, Doubles before) { return x * value - k * before; });
}
template <typename T>
void loop_of_laguerre_polynomial_l(int64_t length, const T* const* in, T* out) {
  loop_of_recurrence(length, in, out, [](Doubles x, double k, Doubles value, Doubles before) {
    return ((2 * k + 1 - x) * value - k * before) / (k + 1);
  });
}
template <typename T>
void loop_of_legendre_polynomial_p(int64_t length, const T* const* in, T* out) {
  loop_of_recurrence(length, in, out, [](Doubles x, double k, Doubles value, Doubles before) {
    return ((2 * k + 1) * x * value - k * before) / (k + 1);
  });
}

// Chebyshev polynomials, where p(1) = first(x). Elements of a degree above `highest` between -bound and bound have a
// trigonometric form, which `scalar` computes.
template <typename T, typename Argument, typename First, typename Scalar>
TT_HOST_DEVICE void loop_of_chebyshev(int64_t length, const T* const* in, T* out, double highest, double bound,
                                      Argument argument, First first, Scalar scalar) {
  for (int64_t i = 0; i < length; i += kDoubles) {
    const Doubles x = load_doubles(in[0] + i, argument), given = load_doubles(in[1] + i, kSame);
    Integers constant;
    const Doubles all = degrees_of(given, &constant);
    const Integers trigonometric = (all > highest) & (x > -bound) & (x < bound);
    const Doubles degree = trigonometric ? Doubles{} : all;
    const Doubles one = Doubles{} + 1;
    Doubles value =
        recur(1, degree, one, first(x), [&](double, Doubles value, Doubles before) { return 2 * x * value - before; });
    value = with_constants(degree == 0 ? one : value, given, constant);
    if (!any(trigonometric)) {
      store_doubles(value, out + i);
      continue;
    }
    T results[kDoubles];
    store_doubles(value, results);
    for (int j = 0; j < kDoubles; ++j) {
      if (trigonometric[j]) results[j] = scalar(argument(in[0][i + j]), in[1][i + j]);
    }
    std::memcpy(out + i, results, sizeof(results));
  }
}
template <typename T>
void loop_of_chebyshev_polynomial_t(int64_t length, const T* const* in, T* out) {
  loop_of_chebyshev(
      length, in, out, 6, 1, kSame, [](Doubles x) { return x; }, &math::chebyshev_polynomial_t<T>);
}
template <typename T>
void loop_of_operator_special_shifted_chebyshev_polynomial_t(int64_t length, const T* const* in, T* out) {
  loop_of_chebyshev(
      length, in, out, 6, 1, kShifted, [](Doubles x) { return x; }, &math::chebyshev_polynomial_t<T>);
}
template <typename T>
void loop_of_chebyshev_polynomial_u(int64_t length, const T* const* in, T* out) {
  loop_of_chebyshev(
      length, in, out, 8, 0.999, kSame, [](Doubles x) { return 2 * x; }, &math::chebyshev_polynomial_u<T>);
}
template <typename T>
void loop_of_operator_special_shifted_chebyshev_polynomial_u(int64_t length, const T* const* in, T* out) {
  loop_of_chebyshev(
      length, in, out, 8, 0.999, kShifted, [](Doubles x) { return 2 * x; }, &math::chebyshev_polynomial_u<T>);
}
template <typename T>
void loop_of_chebyshev_polynomial_v(int64_t length, const T* const* in, T* out) {
  loop_of_chebyshev(
      length, in, out, 8, 0.999, kSame, [](Doubles x) { return 2 * x - 1; }, &math::chebyshev_polynomial_v<T>);
}
template <typename T>
void loop_of_operator_special_shifted_chebyshev_polynomial_v(int64_t length, const T* const* in, T* out) {
  loop_of_chebyshev(
      length, in, out, 8, 0.999, kShifted, [](Doubles x) { return 2 * x - 1; }, &math::chebyshev_polynomial_v<T>);
}
template <typename T>
void loop_of_chebyshev_polynomial_w(int64_t length, const T* const* in, T* out) {
  loop_of_chebyshev(
      length, in, out, 8, 0.999, kSame, [](Doubles x) { return 2 * x + 1; }, &math::chebyshev_polynomial_w<T>);
}
template <typename T>
void loop_of_operator_special_shifted_chebyshev_polynomial_w(int64_t length, const T* const* in, T* out) {
  loop_of_chebyshev(
      length, in, out, 8, 0.999, kShifted, [](Doubles x) { return 2 * x + 1; }, &math::chebyshev_polynomial_w<T>);
}

}  // namespace tt::cpu::TT_ISA
