// The exponential of a matrix: exp(a) = r(a / 2^s)^(2^s), where r is a Padé approximant whose degree depends on the
// norm (Higham 2005: The scaling and squaring method for the matrix exponential revisited).
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "kernels/cpu/lapack/column_major.h"
#include "kernels/cpu/lapack/matrices.h"

namespace tt::cpu {
namespace {

// Degree of a Padé approximant, and the largest norm (maximum row or column sum) of a matrix for which the approximant
// is exact up to rounding.
struct Approximant {
  int degree;
  double norm;
};
constexpr Approximant kSingle[] = {{3, 4.258730016922831e-1}, {5, 1.880152677804762}, {7, 3.925724783138660}};
constexpr Approximant kDouble[] = {{3, 1.495585217958292e-2},
                                   {5, 2.539398330063230e-1},
                                   {7, 9.504178996162932e-1},
                                   {9, 2.097847961257068},
                                   {13, 5.371920351148152}};

template <typename R>
std::span<const Approximant> approximants() {
  if constexpr (sizeof(R) == sizeof(float))
    return kSingle;
  else
    return kDouble;
}

// The approximant is p(a) / p(-a). Returns the coefficient of x^i in p, normalised so that x^degree has the coefficient
// 1. Returns 0 if i > degree.
double coefficient(int degree, int i) {
  double value = i <= degree ? 1 : 0;
  for (int j = degree; j > i; --j) value *= static_cast<double>(j) * (2 * degree - j + 1) / (degree - j + 1);
  return value;
}

template <typename T>
double magnitude(T x) {
  if constexpr (is_complex_v<T>)
    return std::hypot(static_cast<double>(x.re), static_cast<double>(x.im));
  else
    return std::abs(static_cast<double>(x));
}

template <typename T>
double largest_row_sum(const T* a, int64_t n) {
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += magnitude(a[i * n + j]);
    if (!(sum <= largest)) largest = sum;  // also true for NaN
  }
  return largest;
}

template <typename T>
void add_scaled(const std::vector<T>& from, double scale, std::vector<T>* to) {
  const T factor(static_cast<real_of_t<T>>(scale));
  for (size_t i = 0; i < from.size(); ++i) (*to)[i] += factor * from[i];
}
template <typename T>
void add_diagonal(double value, int64_t n, std::vector<T>* to) {
  for (int64_t i = 0; i < n; ++i) (*to)[static_cast<size_t>(i * (n + 1))] += T(static_cast<real_of_t<T>>(value));
}

}  // namespace

template <typename T>
Exponential<T>::Exponential(int64_t n) : n_(to_lapack_int(n)), pivots_(static_cast<size_t>(n)) {
  for (std::vector<T>* m : {&a_, &odd_, &even_, &spare_}) m->resize(static_cast<size_t>(n * n));
  for (std::vector<T>& power : powers_) power.resize(a_.size());
}

// Computes the sum of p's even powers (odd = 0), or of its odd powers divided by a (odd = 1). Powers above a^7 share
// the factor a^6.
template <typename T>
void Exponential<T>::half(int degree, int odd, std::vector<T>* sum) {
  const auto add_powers = [&](int from) {
    for (int p = 0; p < 3; ++p) {
      const double factor = coefficient(degree, from + 2 * p + odd);
      if (factor != 0) add_scaled(powers_[p], factor, sum);
    }
  };
  std::fill(sum->begin(), sum->end(), T(0));
  if (degree > 7) {
    add_powers(8);
    lapack::gemm(n_, powers_[2].data(), sum->data(), spare_.data());
    std::swap(spare_, *sum);
  }
  add_powers(2);
  add_diagonal(coefficient(degree, odd), n_, sum);
}

// Sets even_ to the approximant's value.
template <typename T>
void Exponential<T>::approximate(int degree) {
  lapack::gemm(n_, a_.data(), a_.data(), powers_[0].data());
  for (int p = 1; p < std::min(degree / 2, 3); ++p) {
    lapack::gemm(n_, powers_[0].data(), powers_[p - 1].data(), powers_[p].data());
  }
  half(degree, 0, &even_);
  half(degree, 1, &odd_);
  lapack::gemm(n_, a_.data(), odd_.data(), spare_.data());
  for (size_t i = 0; i < even_.size(); ++i) {
    odd_[i] = even_[i] - spare_[i];
    even_[i] += spare_[i];
  }
  lapack::getrf(n_, n_, odd_.data(), n_, pivots_.data());
  lapack::getrs('N', n_, n_, odd_.data(), n_, pivots_.data(), even_.data(), n_);
}

// Works on transposes: LAPACK reads `a` as a^T, whose exponential is exp(a)^T.
template <typename T>
void Exponential<T>::of(const T* a, T* out) {
  const size_t count = a_.size();
  const double norm = largest_row_sum(a, n_);
  if (!std::isfinite(norm)) {
    std::fill_n(out, count, T(std::numeric_limits<real_of_t<T>>::quiet_NaN()));
    return;
  }
  const std::span<const Approximant> choices = approximants<real_of_t<T>>();
  size_t chosen = 0;
  while (chosen + 1 < choices.size() && norm > choices[chosen].norm) ++chosen;
  const double excess = norm / choices[chosen].norm;
  const int squarings = excess > 1 ? std::ilogb(excess) + 1 : 0;
  const T scale(static_cast<real_of_t<T>>(std::ldexp(1.0, -squarings)));
  for (size_t i = 0; i < count; ++i) a_[i] = a[i] * scale;
  approximate(choices[chosen].degree);
  for (int i = 0; i < squarings; ++i) {
    lapack::gemm(n_, even_.data(), even_.data(), spare_.data());
    std::swap(spare_, even_);
  }
  std::copy(even_.begin(), even_.end(), out);
}

template class Exponential<float>;
template class Exponential<double>;
template class Exponential<Complex<float>>;
template class Exponential<Complex<double>>;

}  // namespace tt::cpu
