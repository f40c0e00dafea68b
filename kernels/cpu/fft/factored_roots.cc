#include "kernels/cpu/fft/factored_roots.h"

#include <algorithm>

#include "kernels/cpu/loops/clones.h"

namespace tt::cpu {

namespace {

template <typename R>
TT_CLONES void multiply(Root factor, const Root* roots, int64_t count, R* re, R* im) {
  for (int64_t i = 0; i < count; ++i) {
    const double a = roots[i].re, b = roots[i].im;
    re[i] = static_cast<R>(factor.re * a - factor.im * b);
    im[i] = static_cast<R>(factor.re * b + factor.im * a);
  }
}

}  // namespace

FactoredRoots::FactoredRoots(int64_t n) {
  while (length() * length() < n) ++shift_;
  for (int64_t k = 0; k < length(); ++k) low_.push_back(root_of_unity(k, n, true));
  for (int64_t k = 0; k < n; k += length()) high_.push_back(root_of_unity(k, n, true));
}

template <typename R>
void FactoredRoots::copy(int64_t first, int64_t count, Split<R> to) const {
  for (int64_t done = 0; done < count;) {
    const int64_t k = first + done, at = k & (length() - 1), part = std::min(count - done, length() - at);
    multiply<R>(high_[static_cast<size_t>(k >> shift_)], low_.data() + at, part, to.re + done, to.im + done);
    done += part;
  }
}

template void FactoredRoots::copy(int64_t, int64_t, Split<float>) const;
template void FactoredRoots::copy(int64_t, int64_t, Split<double>) const;

}  // namespace tt::cpu
