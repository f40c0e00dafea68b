// Fourier transforms along dimensions: one after the other, each a block of lines at a time.

#include <algorithm>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "engine/schema/rules/shape_rules.h"
#include "kernels/common/complex.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/fft_plan.h"

namespace tt::cpu {
namespace {

constexpr int64_t kMostLines = 16;           // side by side: a vector of floats
constexpr int64_t kBlockElements = 1 << 14;  // of a block's lines: what its buffers then take fits the L2
constexpr int64_t kGrain = 1 << 15;          // elements worth a thread

// Plans of recent lengths, which cost as much as a transform of a few lines.
template <typename R>
class Plans {
 public:
  static std::shared_ptr<const FftPlan<R>> get(int64_t n, bool forward) {
    static Plans plans;
    const MutexLock lock(plans.mutex_);
    auto& kept = plans.kept_;
    for (size_t i = 0; i < kept.size(); ++i) {
      if (kept[i].plan->length() != n || kept[i].forward != forward) continue;
      std::rotate(kept.begin(), kept.begin() + i, kept.begin() + i + 1);
      return kept[0].plan;
    }
    auto plan = std::make_shared<const FftPlan<R>>(n, forward);
    if (n <= kLongestKept) {
      if (kept.size() == kMostKept) kept.pop_back();
      kept.insert(kept.begin(), {plan, forward});
    }
    return plan;
  }

 private:
  static constexpr size_t kMostKept = 16;
  static constexpr int64_t kLongestKept = 1 << 16;
  struct Kept {
    std::shared_ptr<const FftPlan<R>> plan;
    bool forward;
  };
  Mutex mutex_;
  std::vector<Kept> kept_ ABSL_GUARDED_BY(mutex_);  // the latest used first
};

// The lines of a contiguous tensor along one dimension.
struct LineSet {
  int64_t outer = 1, length = 1, inner = 1;

  LineSet(SizesView sizes, int64_t dim) {
    for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) {
      (d < dim ? outer : d == dim ? length : inner) *= sizes[d];
    }
  }
  int64_t lines() const { return outer * inner; }
  // Where line l begins.
  int64_t start(int64_t l) const { return l / inner * length * inner + l % inner; }
};

// One thread's four arrays, and what they are to a plan.
template <typename R>
class Buffers {
 public:
  explicit Buffers(int64_t room) : room_(room), memory_(std::make_unique_for_overwrite<R[]>(4 * room)) {}
  Split<R> data() const { return {memory_.get(), memory_.get() + room_}; }
  Split<R> work() const { return {memory_.get() + 2 * room_, memory_.get() + 3 * room_}; }

 private:
  int64_t room_;
  std::unique_ptr<R[]> memory_;
};

// body(first, count, buffers) for blocks of lines, on the threads of the pool.
template <typename R, typename Body>
void each_block(const FftPlan<R>& plan, int64_t lines, Body body) {
  const int64_t together = std::clamp<int64_t>(kBlockElements / plan.length(), 1, std::min(kMostLines, lines));
  const int64_t blocks = (lines + together - 1) / together;
  parallel_for(blocks, std::max<int64_t>(1, kGrain / (together * plan.length())), [&](int64_t begin, int64_t end) {
    const Buffers<R> buffers(plan.room(together));
    for (int64_t b = begin; b < end; ++b) body(b * together, std::min(together, lines - b * together), buffers);
  });
}

// Calls f(k, l, element) for element k of `count` lines from `first` on; elements of one line are `set.inner` apart.
template <typename F>
void each_element(const LineSet& set, int64_t first, int64_t count, int64_t length, F f) {
  for (int64_t l = 0; l < count; ++l) {
    const int64_t start = set.start(first + l);
    for (int64_t k = 0; k < length; ++k) f(k * count + l, start + k * set.inner);
  }
}

// Complex lines to complex ones, in place.
template <typename R>
void transform(Tensor& t, int64_t dim, bool forward, R scale) {
  const LineSet set(t.sizes(), dim);
  const auto plan = Plans<R>::get(set.length, forward);
  auto* elements = t.data_as<Complex<R>>();
  each_block(*plan, set.lines(), [&](int64_t first, int64_t count, const Buffers<R>& buffers) {
    const Split<R> in = buffers.data();
    each_element(set, first, count, set.length, [&](int64_t at, int64_t element) {
      in.re[at] = elements[element].re;
      in.im[at] = elements[element].im;
    });
    const Split<R> out = plan->run(in, buffers.work(), count);
    each_element(set, first, count, set.length, [&](int64_t at, int64_t element) {
      elements[element] = {out.re[at] * scale, out.im[at] * scale};
    });
  });
}

// exp(-+2 pi i k / n) for k <= n / 2.
template <typename R>
std::vector<Complex<R>> half_circle(int64_t n, bool forward) {
  std::vector<Complex<R>> roots(n / 2 + 1);
  for (int64_t k = 0; k <= n / 2; ++k) {
    const double angle = 2 * 3.14159265358979323846 * static_cast<double>(k) / static_cast<double>(n);
    roots[k] = {static_cast<R>(std::cos(angle)), static_cast<R>(forward ? -std::sin(angle) : std::sin(angle))};
  }
  return roots;
}

// Real lines of n to the n / 2 + 1 first of their spectrum. Even ones as complex lines of half the length, whose
// spectrum is that of the even elements and that of the odd ones, taken apart.
template <typename R>
void transform_real(const Tensor& x, int64_t dim, R scale, Tensor& out) {
  const LineSet from(x.sizes(), dim), to(out.sizes(), dim);
  const int64_t n = from.length, half = n / 2;
  const bool even = n % 2 == 0;
  const auto plan = Plans<R>::get(even ? half : n, true);
  const std::vector<Complex<R>> roots = even ? half_circle<R>(n, true) : std::vector<Complex<R>>();
  const R* elements = x.data_as<R>();
  auto* spectrum = out.data_as<Complex<R>>();
  each_block(*plan, from.lines(), [&](int64_t first, int64_t count, const Buffers<R>& buffers) {
    const Split<R> in = buffers.data();
    for (int64_t l = 0; l < count; ++l) {
      const R* line = elements + from.start(first + l);
      for (int64_t k = 0; k < plan->length(); ++k) {
        in.re[k * count + l] = line[(even ? 2 * k : k) * from.inner];
        in.im[k * count + l] = even ? line[(2 * k + 1) * from.inner] : R(0);
      }
    }
    const Split<R> z = plan->run(in, buffers.work(), count);
    each_element(to, first, count, half + 1, [&](int64_t at, int64_t element) {
      if (!even) {
        spectrum[element] = {z.re[at] * scale, z.im[at] * scale};
        return;
      }
      const int64_t k = at / count, l = at % count, a = k % half * count + l, b = (half - k) % half * count + l;
      const Complex<R> sum((z.re[a] + z.re[b]) / 2, (z.im[a] - z.im[b]) / 2);
      const Complex<R> difference((z.im[a] + z.im[b]) / 2, (z.re[b] - z.re[a]) / 2);
      spectrum[element] = (sum + roots[k] * difference) * Complex<R>(scale);
    });
  });
}

// The other way: the first half of a spectrum, taken for a Hermitian one, to real lines of out's length.
template <typename R>
void transform_to_real(const Tensor& x, int64_t dim, R scale, Tensor& out) {
  const LineSet from(x.sizes(), dim), to(out.sizes(), dim);
  const int64_t n = to.length, half = n / 2;
  const bool even = n % 2 == 0;
  const auto plan = Plans<R>::get(even ? half : n, false);
  const std::vector<Complex<R>> roots = even ? half_circle<R>(n, false) : std::vector<Complex<R>>();
  const auto* spectrum = x.data_as<Complex<R>>();
  R* elements = out.data_as<R>();
  each_block(*plan, to.lines(), [&](int64_t first, int64_t count, const Buffers<R>& buffers) {
    const Split<R> in = buffers.data();
    for (int64_t l = 0; l < count; ++l) {
      const Complex<R>* line = spectrum + from.start(first + l);
      // The imaginary parts of what a real line's spectrum has real are not looked at.
      const auto at = [&](int64_t k) {
        const Complex<R> v = line[k * from.inner];
        return k == 0 || 2 * k == n ? Complex<R>(v.re) : v;
      };
      for (int64_t k = 0; k < plan->length(); ++k) {
        Complex<R> v;
        if (even) {
          const Complex<R> a = at(k), other = at(half - k), b(other.re, -other.im);
          const Complex<R> odd = (a - b) * roots[k];
          v = (a + b) + Complex<R>(-odd.im, odd.re);
        } else {
          const Complex<R> mirrored = at(k <= half ? k : n - k);
          v = k <= half ? mirrored : Complex<R>(mirrored.re, -mirrored.im);
        }
        in.re[k * count + l] = v.re;
        in.im[k * count + l] = v.im;
      }
    }
    const Split<R> z = plan->run(in, buffers.work(), count);
    for (int64_t l = 0; l < count; ++l) {
      R* line = elements + to.start(first + l);
      for (int64_t k = 0; k < plan->length(); ++k) {
        line[(even ? 2 * k : k) * to.inner] = z.re[k * count + l] * scale;
        if (even) line[(2 * k + 1) * to.inner] = z.im[k * count + l] * scale;
      }
    }
  });
}

template <typename F>
void with_parts(DType complex, F f) {
  complex == DType::kComplex64 ? f(float()) : f(double());
}

}  // namespace

void fft_c2c(const Tensor& input, absl::Span<const int64_t> dim, double scale, bool forward, Tensor& out) {
  copy(input, out);
  if (out.numel() == 0) return;
  with_parts(out.dtype(), [&]<typename R>(R) {
    for (size_t i = 0; i < dim.size(); ++i) {
      const bool last = i + 1 == dim.size();
      transform<R>(out, shape_rules::wrap_dim(dim[i], out.dim()), forward, last ? static_cast<R>(scale) : R(1));
    }
  });
}

void fft_r2c(const Tensor& input, absl::Span<const int64_t> dim, double scale, Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor x = contiguous(input);
  with_parts(out.dtype(), [&]<typename R>(R) {
    transform_real<R>(x, shape_rules::wrap_dim(dim.back(), x.dim()), static_cast<R>(scale), out);
    for (size_t i = dim.size() - 1; i-- > 0;) {
      transform<R>(out, shape_rules::wrap_dim(dim[i], out.dim()), true, R(1));
    }
  });
}

void fft_c2r(const Tensor& input, absl::Span<const int64_t> dim, double scale, int64_t, Tensor& out) {
  if (out.numel() == 0) return;
  Tensor x = input;
  with_parts(input.dtype(), [&]<typename R>(R) {
    if (dim.size() > 1) {
      x = empty(input.sizes(), input.dtype(), input.device());
      copy(input, x);
      for (size_t i = 0; i + 1 < dim.size(); ++i) {
        transform<R>(x, shape_rules::wrap_dim(dim[i], x.dim()), false, R(1));
      }
    }
    transform_to_real<R>(contiguous(x), shape_rules::wrap_dim(dim.back(), x.dim()), static_cast<R>(scale), out);
  });
}

}  // namespace tt::cpu
