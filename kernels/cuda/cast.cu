#include "kernels/cuda/cast.h"

#include "kernels/cuda/layout.h"
#include "kernels/cuda/vectors.h"

namespace tt::cuda {

namespace {

// Where both lie one by one. A thread moves sixteen bytes of the wider, fewer of the other.
template <typename From, typename To>
struct Cast {
  static constexpr int kLanes = 16 / (sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To));
  int64_t n;
  const From* from;
  To* to;

  TT_DEVICE void operator()(int64_t i) const {
    const int64_t at = i * kLanes;
    if (at + kLanes > n) {
      for (int64_t j = at; j < n; ++j) to[j] = convert<To>(from[j]);
      return;
    }
    const auto values = load_vector<From, kLanes>(from + at);
    Vector<To, kLanes> results;
    for (int lane = 0; lane < kLanes; ++lane) results.at[lane] = convert<To>(values.at[lane]);
    store_vector(to + at, results);
  }
};

template <typename From, typename To>
void cast_vectors(const Queue& queue, const Tensor& src, const Tensor& dst) {
  const Cast<From, To> cast{dst.numel(), src.data_as<From>(), dst.data_as<To>()};
  for_each(queue, (cast.n + cast.kLanes - 1) / cast.kLanes, cast);
}

template <typename From>
void cast_vectors_from(const Queue& queue, const Tensor& src, const Tensor& dst) {
  with_element(dst.dtype(), [&]<typename To>(std::type_identity<To>) { cast_vectors<From, To>(queue, src, dst); });
}

// Through C, the narrowest type that holds the source.
template <typename C>
struct CastAnywhere {
  Layout<2> layout;
  Access from, to;

  TT_DEVICE void operator()(int64_t i) const {
    const Offsets<2> offsets = layout.offsets(i);
    to.store(offsets.at[1], from.load<C>(offsets.at[0]));
  }
};

template <typename C>
void cast_anywhere(const Queue& queue, const Layout<2>& layout, const Tensor& src, const Tensor& dst) {
  for_each(queue, dst.numel(),
           CastAnywhere<C>{layout, Access(src.data(), src.dtype()), Access(dst.data(), dst.dtype())});
}

}  // namespace

void cast_elements(const Queue& queue, const Tensor& src, const Tensor& dst) {
  const Layout<2> layout(dst.sizes(), {broadcast_strides(src.sizes(), src.strides(), dst.sizes()), dst.strides()});
  if (is_complex(src.dtype()) || is_complex(dst.dtype())) {
    const DType dtype = is_complex(src.dtype()) ? src.dtype() : dst.dtype();
    dtype == DType::kComplex64 ? cast_anywhere<Complex<float>>(queue, layout, src, dst)
                               : cast_anywhere<Complex<double>>(queue, layout, src, dst);
  } else if (layout.is_linear() && is_aligned(src.data()) && is_aligned(dst.data())) {
    with_element(src.dtype(), [&]<typename From>(std::type_identity<From>) { cast_vectors_from<From>(queue, src, dst); });
  } else if (src.dtype() == DType::kFloat64) {
    cast_anywhere<double>(queue, layout, src, dst);
  } else if (category(src.dtype()) == Category::kFloating) {
    cast_anywhere<float>(queue, layout, src, dst);
  } else {
    cast_anywhere<int64_t>(queue, layout, src, dst);
  }
}

}  // namespace tt::cuda
