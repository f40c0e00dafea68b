#include "kernels/cuda/iteration/float8.h"

#include "kernels/common/iteration/float8.h"
#include "kernels/cuda/iteration/cast_vectors.h"
#include "kernels/cuda/launch/layout.h"

namespace tt::cuda {

namespace {

template <typename From, typename To>
struct CastFloat8 {
  Layout<2> layout;
  const From* from;
  To* to;
  TT_DEVICE void operator()(int64_t i) const {
    const Offsets<2> at = layout.offsets(i);
    to[at.at[1]] = To(static_cast<float>(from[at.at[0]]));
  }
};

// Converts 8-bit floats to another dtype through C: float, or a complex type if the other dtype is complex.
template <typename From, typename C>
struct Widen {
  Layout<2> layout;
  const From* from;
  Access to;
  TT_DEVICE void operator()(int64_t i) const {
    const Offsets<2> at = layout.offsets(i);
    to.store(at.at[1], C(static_cast<float>(from[at.at[0]])));
  }
};

template <typename C, typename To>
struct Narrow {
  Layout<2> layout;
  Access from;
  To* to;
  TT_DEVICE void operator()(int64_t i) const {
    const Offsets<2> at = layout.offsets(i);
    to[at.at[1]] = To(convert<float>(from.load<C>(at.at[0])));
  }
};

Layout<2> layout_of(const Tensor& src, const Tensor& dst) {
  return Layout<2>(dst.sizes(), {broadcast_strides(src.sizes(), src.strides(), dst.sizes()), dst.strides()});
}

Access access(const Tensor& t) { return Access(t.data(), t.dtype()); }

template <typename From>
void widen_to(const Queue& queue, const Layout<2>& layout, const Tensor& src, const Tensor& dst) {
  const From* from = src.data_as<From>();
  const int64_t n = dst.numel();
  if (!is_complex(dst.dtype())) return for_each(queue, n, Widen<From, float>{layout, from, access(dst)});
  for_each(queue, n, Widen<From, Complex<float>>{layout, from, access(dst)});
}

template <typename To>
void narrow_to(const Queue& queue, const Layout<2>& layout, const Tensor& src, const Tensor& dst) {
  To* to = dst.data_as<To>();
  const int64_t n = dst.numel();
  if (!is_complex(src.dtype())) return for_each(queue, n, Narrow<float, To>{layout, access(src), to});
  for_each(queue, n, Narrow<Complex<float>, To>{layout, access(src), to});
}

// Casts to and from the common types of weights and activations. Returns false for other types.
template <typename T>
bool cast_plain(const Queue& queue, const Tensor& src, const Tensor& dst) {
  const bool widens = is_float8(src.dtype());
  switch (widens ? dst.dtype() : src.dtype()) {
    case DType::kFloat32:
      return widens ? cast_vectors<T, float>(queue, src, dst) : cast_vectors<float, T>(queue, src, dst), true;
    case DType::kFloat16:
      return widens ? cast_vectors<T, Half>(queue, src, dst) : cast_vectors<Half, T>(queue, src, dst), true;
    case DType::kBFloat16:
      return widens ? cast_vectors<T, BFloat16>(queue, src, dst) : cast_vectors<BFloat16, T>(queue, src, dst), true;
    default: return false;
  }
}

}  // namespace

void cast_float8(const Queue& queue, const Tensor& src, const Tensor& dst) {
  const Layout<2> layout = layout_of(src, dst);
  const bool widens = is_float8(src.dtype());
  if (widens && is_float8(dst.dtype())) {  // two different 8-bit types
    return src.dtype() == DType::kFloat8E4m3fn
               ? for_each(queue, dst.numel(),
                          CastFloat8<Float8E4m3fn, Float8E5m2>{layout, src.data_as<Float8E4m3fn>(),
                                                               dst.data_as<Float8E5m2>()})
               : for_each(queue, dst.numel(),
                          CastFloat8<Float8E5m2, Float8E4m3fn>{layout, src.data_as<Float8E5m2>(),
                                                               dst.data_as<Float8E4m3fn>()});
  }
  with_float8(widens ? src.dtype() : dst.dtype(), [&]<typename T>(std::type_identity<T>) {
    const bool plain = layout.is_linear() && is_aligned(src.data()) && is_aligned(dst.data());
    if (plain && cast_plain<T>(queue, src, dst)) return;
    widens ? widen_to<T>(queue, layout, src, dst) : narrow_to<T>(queue, layout, src, dst);
  });
}

}  // namespace tt::cuda
