// Roots of unity, and the factorisation of Fourier transform lengths.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/common/math/scalar_math.h"

namespace tt {

inline constexpr int64_t kLargestRadix = 31;  // for a larger prime factor, a convolution is faster than the direct sum

struct Root {
  double re, im;
};

// exp(-2 pi i k / n) if `forward`, else exp(2 pi i k / n). The angle is reduced to one octant first, so that only the
// last bit of a result may be inexact.
TT_HOST_DEVICE Root root_of_unity(int64_t k, int64_t n, bool forward) {
  k %= n;
  const auto eighths = static_cast<unsigned __int128>(k) * 8;
  const int octant = static_cast<int>(eighths / static_cast<uint64_t>(n));
  auto within = static_cast<int64_t>(eighths % static_cast<uint64_t>(n));
  if (octant % 2 == 1) within = n - within;  // in odd octants, the angle is measured from the octant's end
  const double angle = 0.78539816339744830962 * (static_cast<double>(within) / static_cast<double>(n));
  const double c = math::cos(angle), s = math::sin(angle);
  const bool swapped = octant == 1 || octant == 2 || octant == 5 || octant == 6;
  double re = swapped ? s : c, im = swapped ? c : s;
  if (octant >= 2 && octant <= 5) re = -re;
  if (octant >= 4) im = -im;
  return {re, forward ? -im : im};
}

// exp(-pi i k^2 / n) if `forward`, else exp(pi i k^2 / n). With these factors, Bluestein's algorithm turns a transform
// of any length into a convolution.
TT_HOST_DEVICE Root bluestein_factor(int64_t k, int64_t n, bool forward) {
  const auto square = static_cast<unsigned __int128>(k) * static_cast<uint64_t>(k) % (2 * static_cast<uint64_t>(n));
  return root_of_unity(static_cast<int64_t>(square), 2 * n, forward);
}

// The radices of a transform of length n: factors of 4 first, then primes in ascending order. Empty if n is 1 or has a
// prime factor above kLargestRadix.
inline std::vector<int64_t> radices(int64_t n) {
  std::vector<int64_t> result;
  for (; n % 4 == 0; n /= 4) result.push_back(4);
  for (int64_t p : {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31}) {
    static_assert(kLargestRadix == 31);
    for (; n % p == 0; n /= p) result.push_back(p);
  }
  if (n > 1) result.clear();
  return result;
}

}  // namespace tt
