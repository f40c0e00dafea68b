// FactoredRoots: exp(-2 pi i k / n) for any k < n, as the product of two stored roots.
//
// The tables contain about 2 sqrt(n) roots, so that they are created quickly and stay in the caches for any n. Products
// are computed in double. Immutable after construction and usable from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/common/fft/fft_roots.h"
#include "kernels/cpu/iteration/fft_passes.h"

namespace tt::cpu {

class FactoredRoots {
 public:
  explicit FactoredRoots(int64_t n);  // n >= 1

  // Requires 0 <= k < n.
  Root at(int64_t k) const {
    const Root a = high_[static_cast<size_t>(k >> shift_)], b = low_[static_cast<size_t>(k & (length() - 1))];
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  // Stores the roots of `count` successive k, starting at `first`. Requires first + count <= n.
  template <typename R>
  void copy(int64_t first, int64_t count, Split<R> to) const;

  size_t bytes() const { return (high_.size() + low_.size()) * sizeof(Root); }

 private:
  int64_t length() const { return int64_t{1} << shift_; }

  int shift_ = 0;
  std::vector<Root> high_, low_;  // of the multiples of length(), and of the numbers below length()
};

}  // namespace tt::cpu
