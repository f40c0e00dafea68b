#include "kernels/cuda/fft/library_transform.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "kernels/common/math/scalar_traits.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/launch/layout.h"

namespace tt::cuda {
namespace {

int64_t product(SizesView sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// Sizes and strides of a tensor with its dimensions reordered: the transformed dimensions follow the other dimensions.
struct ReorderedDims {
  Sizes sizes, strides;
  int rank;  // number of transformed dimensions

  ReorderedDims(const Tensor& t, absl::Span<const int64_t> dims) : rank(static_cast<int>(dims.size())) {
    for (int64_t d = 0; d < t.dim(); ++d) {
      if (std::find(dims.begin(), dims.end(), d) == dims.end()) add(t, d);
    }
    for (int64_t d : dims) add(t, d);
  }
  size_t first() const { return sizes.size() - static_cast<size_t>(rank); }  // first transformed dimension

 private:
  void add(const Tensor& t, int64_t d) {
    sizes.push_back(t.size(d));
    strides.push_back(t.stride(d));
  }
};

// Sets the stride and the embedding sizes of `layout`. Returns false unless each stride is a multiple of the next.
bool set_transform(const ReorderedDims& a, FftLayout* layout) {
  const size_t first = a.first(), last = a.sizes.size() - 1;
  layout->stride = a.sizes[last] == 1 ? 1 : a.strides[last];
  layout->embed[0] = a.sizes[first];
  int64_t inner = layout->stride;
  for (size_t d = last; d > first && inner > 0; --d) {
    const int64_t outer = a.sizes[d - 1] == 1 ? inner * a.sizes[d] : a.strides[d - 1];
    if (outer % inner != 0 || outer / inner < a.sizes[d]) return false;
    layout->embed[d - first] = outer / inner;
    inner = outer;
  }
  layout->distance = inner * a.sizes[first];
  return inner > 0;
}

// Sets the distance between transforms. Returns false if not all adjacent transforms have the same distance.
bool set_distance(const ReorderedDims& a, FftLayout* layout) {
  int64_t next = 0;  // required stride of the next dimension; 0: any
  for (size_t d = a.first(); d-- > 0;) {
    if (a.sizes[d] == 1) continue;
    if (a.strides[d] <= 0 || (next > 0 && a.strides[d] != next)) return false;
    if (next == 0) layout->distance = a.strides[d];
    next = a.strides[d] * a.sizes[d];
  }
  return true;
}

// Returns nullopt if the library cannot describe the layout.
std::optional<FftLayout> layout_of(const ReorderedDims& a, const void* data, bool is_double) {
  const size_t alignment = is_double ? 16 : 8;  // alignment of a complex number
  FftLayout layout;
  const bool described =
      reinterpret_cast<uintptr_t>(data) % alignment == 0 && set_transform(a, &layout) && set_distance(a, &layout);
  return described ? std::optional(layout) : std::nullopt;
}

// The source or the target of a transform.
struct End {
  Tensor tensor;
  FftLayout layout;
  bool is_copy;  // whether `tensor` is a contiguous copy with reordered dimensions
};

End packed(const ReorderedDims& a, const Tensor& like) {
  ReorderedDims own = a;
  own.strides = contiguous_strides(own.sizes);
  const bool is_double = to_real(like.dtype()) == DType::kFloat64;
  const Tensor t = empty(own.sizes, like.dtype(), like.device());
  return {t, *layout_of(own, t.data(), is_double), true};
}

// Returns the tensor itself if the library can describe its layout, else a new one.
End end_of(const Tensor& t, const ReorderedDims& a) {
  const auto layout = layout_of(a, t.data(), to_real(t.dtype()) == DType::kFloat64);
  return layout ? End{t, *layout, false} : packed(a, t);
}

// Copies the half spectrum of n real numbers to a packed one. Sets the imaginary parts to 0 where the spectrum of real
// numbers is real: cuFFT's documentation does not define how it treats these parts.
template <typename R>
struct CopyHalfSpectrum {
  Layout<1> layout;
  int64_t half, n;
  const Complex<R>* from;
  Complex<R>* to;

  TT_DEVICE void operator()(int64_t i) const {
    const int64_t k = i % half;
    const Complex<R> value = from[layout.offsets(i).at[0]];
    to[i] = k == 0 || 2 * k == n ? Complex<R>(value.re) : value;
  }
};

template <typename T>
struct Scale {
  Layout<2> layout;
  const T* from;
  T* to;
  real_of_t<T> scale;

  TT_DEVICE void operator()(int64_t i) const {
    const Offsets<2> at = layout.offsets(i);
    to[at.at[1]] = math::times(from[at.at[0]], scale);
  }
};

template <typename R>
End half_spectrum(const Queue& queue, const Tensor& x, absl::Span<const int64_t> dims, int64_t n) {
  ReorderedDims a(x, dims);
  a.sizes.back() = n / 2 + 1;
  End end = packed(a, x);
  for_each(queue, end.tensor.numel(),
           CopyHalfSpectrum<R>{Layout<1>(a.sizes, {a.strides}), n / 2 + 1, n, x.data_as<Complex<R>>(),
                               end.tensor.data_as<Complex<R>>()});
  return end;
}

End source(const Tensor& x, absl::Span<const int64_t> dims) {
  const ReorderedDims a(x, dims);
  End end = end_of(x, a);
  if (end.is_copy) copy(view_of(x, {a.sizes, a.strides, x->offset, true}), end.tensor);
  return end;
}

// Scales the library's result and stores it in `out`.
template <typename T>
void finish(const Queue& queue, const End& result, const ReorderedDims& a, double scale, const Tensor& out) {
  if (!result.is_copy && scale == 1) return;
  const Sizes from = result.is_copy ? contiguous_strides(a.sizes) : a.strides;
  for_each(queue, out.numel(),
           Scale<T>{Layout<2>(a.sizes, {from, a.strides}), result.tensor.data_as<T>(), out.data_as<T>(),
                    static_cast<real_of_t<T>>(scale)});
}

template <typename R>
bool transform(FftKind kind, const Tensor& x, absl::Span<const int64_t> dims, bool forward, double scale,
               const Tensor& out) {
  const Queue queue = queue_of(out);
  const bool is_inverse = kind == FftKind::kComplexToReal;
  const ReorderedDims reals(kind == FftKind::kRealToComplex ? x : out, dims), results(out, dims);
  const End from = is_inverse ? half_spectrum<R>(queue, x, dims, reals.sizes.back()) : source(x, dims);
  const End to = end_of(out, results);
  FftTransform t{kind, sizeof(R) == 8, forward, results.rank, {}, 0, from.layout, to.layout};
  std::copy(reals.sizes.begin() + reals.first(), reals.sizes.end(), t.sizes.begin());
  t.batch = product(SizesView(reals.sizes).first(reals.first()));
  if (!fft()->transform(queue, t, from.tensor.data(), to.tensor.data())) return false;
  is_inverse ? finish<R>(queue, to, results, scale, out) : finish<Complex<R>>(queue, to, results, scale, out);
  return true;
}

}  // namespace

bool transform_by_library(FftKind kind, const Tensor& x, absl::Span<const int64_t> dims, bool forward, double scale,
                          const Tensor& out) {
  if (!fft()) return false;
  const bool is_double = to_real(out.dtype()) == DType::kFloat64;
  return is_double ? transform<double>(kind, x, dims, forward, scale, out)
                   : transform<float>(kind, x, dims, forward, scale, out);
}

}  // namespace tt::cuda
