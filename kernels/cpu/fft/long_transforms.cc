#include "kernels/cpu/fft/long_transforms.h"

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "engine/device/parallel.h"
#include "engine/memory/workspace_charge.h"
#include "kernels/common/math/complex.h"
#include "kernels/cpu/fft/long_line.h"
#include "kernels/cpu/fft/plan_cache.h"
#include "kernels/cpu/iteration/copy.h"

namespace tt::cpu {

namespace {

constexpr int64_t kGrain = 1 << 15;  // minimum number of elements per thread

// A view with `dim` exchanged with the last dimension.
Tensor with_last(const Tensor& t, int64_t dim) {
  Geometry g{t.sizes(), t.strides(), t->offset};
  std::swap(g.sizes[dim], g.sizes.back());
  std::swap(g.strides[dim], g.strides.back());
  return view_of(t, g);
}

bool has_contiguous_lines(const Tensor& t, int64_t dim) {
  return std::all_of(t.sizes().begin() + dim + 1, t.sizes().end(), [](int64_t size) { return size == 1; });
}

// Calls body(from, to) with tensors whose lines along the last dimension are contiguous.
void with_contiguous_lines(const Tensor& from, const Tensor& to, int64_t dim,
                           absl::FunctionRef<void(const Tensor&, const Tensor&)> body) {
  if (has_contiguous_lines(from, dim)) return body(from, to);
  const Tensor from_view = with_last(from, dim), to_view = with_last(to, dim);
  const Tensor x = empty(from_view.sizes(), from.dtype(), from.device());
  copy(from_view, x);
  const bool in_place = from.dtype() == to.dtype();
  const Tensor y = in_place ? x : empty(to_view.sizes(), to.dtype(), to.device());
  body(x, y);
  copy(y, to_view);
}

// A plan, and the memory that its transforms need.
template <typename R>
class Transform {
 public:
  Transform(int64_t n, bool for_reals, Device device)
      : plan_(PlanCache<LongLine<R>>::get(n, for_reals)),
        charge_(plan_->bytes()),
        workspace_(buffer(plan_->workspace_size(), device)) {}

  // A buffer of R elements.
  static Tensor buffer(int64_t size, Device device) {
    return empty({size}, std::is_same_v<R, float> ? DType::kFloat32 : DType::kFloat64, device);
  }
  void run(const R* from, R* to, bool forward, R scale) const {
    plan_->run(from, to, !forward, scale, workspace_.data_as<R>());
  }
  const LongLine<R>& plan() const { return *plan_; }

 private:
  std::shared_ptr<const LongLine<R>> plan_;
  WorkspaceCharge charge_;
  Tensor workspace_;
};

template <typename R>
R* pairs_of(const Tensor& t) {
  return reinterpret_cast<R*>(t.data_as<Complex<R>>());
}

}  // namespace

template <typename R>
bool is_long(int64_t n, bool real) {
  return LongLine<R>::is_faster(real && n % 2 == 0 ? n / 2 : n);
}

template <typename R>
void transform_long(const Tensor& from, const Tensor& to, int64_t dim, bool forward, R scale) {
  const Transform<R> transform(from.size(dim), false, from.device());
  with_contiguous_lines(from, to, dim, [&](const Tensor& x, const Tensor& y) {
    const int64_t n = from.size(dim), lines = from.numel() / n;
    for (int64_t l = 0; l < lines; ++l) {
      transform.run(pairs_of<R>(x) + 2 * l * n, pairs_of<R>(y) + 2 * l * n, forward, scale);
    }
  });
}

template <typename R>
void transform_long_real(const Tensor& from, const Tensor& to, int64_t dim, R scale) {
  const int64_t n = from.size(dim), lines = from.numel() / n, half = n / 2;
  const bool even = n % 2 == 0;
  const Transform<R> transform(even ? half : n, even, from.device());
  with_contiguous_lines(from, to, dim, [&](const Tensor& x, const Tensor& y) {
    const R* reals = x.data_as<R>();
    R* spectra = pairs_of<R>(y);
    if (even) {
      for (int64_t l = 0; l < lines; ++l) {
        R* spectrum = spectra + 2 * l * (half + 1);
        transform.run(reals + l * n, spectrum, true, R(1));
        transform.plan().spectrum_of_reals(spectrum, scale);
      }
      return;
    }
    const Tensor line = Transform<R>::buffer(2 * n, from.device());
    R* pairs = line.data_as<R>();
    for (int64_t l = 0; l < lines; ++l) {
      parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          pairs[2 * k] = reals[l * n + k];
          pairs[2 * k + 1] = 0;
        }
      });
      transform.run(pairs, pairs, true, scale);
      pairs[1] = 0;  // a sum of real numbers, without rounding errors
      std::copy_n(pairs, 2 * (half + 1), spectra + 2 * l * (half + 1));
    }
  });
}

template <typename R>
void transform_long_to_real(const Tensor& from, const Tensor& to, int64_t dim, R scale) {
  const int64_t n = to.size(dim), lines = to.numel() / n, half = n / 2;
  const bool even = n % 2 == 0;
  const Transform<R> transform(even ? half : n, even, from.device());
  with_contiguous_lines(from, to, dim, [&](const Tensor& x, const Tensor& y) {
    const R* spectra = pairs_of<R>(x);
    R* reals = y.data_as<R>();
    const int64_t stride = 2 * from.size(dim);
    if (even) {
      for (int64_t l = 0; l < lines; ++l) {
        transform.plan().reals_from_spectrum(spectra + l * stride, reals + l * n);
        transform.run(reals + l * n, reals + l * n, false, scale);
      }
      return;
    }
    const Tensor line = Transform<R>::buffer(2 * n, from.device());
    R* pairs = line.data_as<R>();
    for (int64_t l = 0; l < lines; ++l) {
      const R* spectrum = spectra + l * stride;
      parallel_for(half + 1, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          const R re = spectrum[2 * k], im = k == 0 ? R(0) : spectrum[2 * k + 1];
          pairs[2 * k] = re;
          pairs[2 * k + 1] = im;
          if (k == 0) continue;
          pairs[2 * (n - k)] = re;
          pairs[2 * (n - k) + 1] = -im;
        }
      });
      transform.run(pairs, pairs, false, scale);
      parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) reals[l * n + k] = pairs[2 * k];
      });
    }
  });
}

#define TT_LONG_TRANSFORMS(R)                                                   \
  template bool is_long<R>(int64_t, bool);                                      \
  template void transform_long(const Tensor&, const Tensor&, int64_t, bool, R); \
  template void transform_long_real(const Tensor&, const Tensor&, int64_t, R);  \
  template void transform_long_to_real(const Tensor&, const Tensor&, int64_t, R);
TT_LONG_TRANSFORMS(float)
TT_LONG_TRANSFORMS(double)
#undef TT_LONG_TRANSFORMS

}  // namespace tt::cpu
