#include "kernels/cuda/iteration/cast.h"

#include "kernels/cuda/iteration/cast_vectors.h"
#include "kernels/cuda/iteration/float8.h"
#include "kernels/cuda/launch/layout.h"

namespace tt::cuda {

namespace {

template <typename From>
void cast_vectors_from(const Queue& queue, const Tensor& src, const Tensor& dst) {
  with_element(dst.dtype(), [&]<typename To>(std::type_identity<To>) { cast_vectors<From, To>(queue, src, dst); });
}

// Converts elements through C, the narrowest type that can represent all values of the source's dtype.
template <typename C>
struct CastAnyLayout {
  Layout<2> layout;
  Access from, to;

  TT_DEVICE void operator()(int64_t i) const {
    const Offsets<2> offsets = layout.offsets(i);
    to.store(offsets.at[1], from.load<C>(offsets.at[0]));
  }
};

template <typename C>
void cast_any_layout(const Queue& queue, const Layout<2>& layout, const Tensor& src, const Tensor& dst) {
  for_each(queue, dst.numel(),
           CastAnyLayout<C>{layout, Access(src.data(), src.dtype()), Access(dst.data(), dst.dtype())});
}

}  // namespace

void cast_elements(const Queue& queue, const Tensor& src, const Tensor& dst) {
  if (is_float8(src.dtype()) || is_float8(dst.dtype())) return cast_float8(queue, src, dst);
  const Layout<2> layout(dst.sizes(), {broadcast_strides(src.sizes(), src.strides(), dst.sizes()), dst.strides()});
  if (is_complex(src.dtype()) || is_complex(dst.dtype())) {
    const DType dtype = is_complex(src.dtype()) ? src.dtype() : dst.dtype();
    dtype == DType::kComplex64 ? cast_any_layout<Complex<float>>(queue, layout, src, dst)
                               : cast_any_layout<Complex<double>>(queue, layout, src, dst);
  } else if (layout.is_linear() && is_aligned(src.data()) && is_aligned(dst.data())) {
    with_element(src.dtype(),
                 [&]<typename From>(std::type_identity<From>) { cast_vectors_from<From>(queue, src, dst); });
  } else if (src.dtype() == DType::kFloat64) {
    cast_any_layout<double>(queue, layout, src, dst);
  } else if (category(src.dtype()) == Category::kFloating) {
    cast_any_layout<float>(queue, layout, src, dst);
  } else {
    cast_any_layout<int64_t>(queue, layout, src, dst);
  }
}

}  // namespace tt::cuda
