#include "kernels/cuda/iteration/fill.h"

#include <cstring>

#include "kernels/common/iteration/float8.h"
#include "kernels/cuda/launch/layout.h"
#include "kernels/cuda/launch/vectors.h"

namespace tt::cuda {
namespace {

template <typename T>
struct FillVectors {
  static constexpr int kLanes = Vector<T>::kLanes;
  int64_t n;
  T* to;
  T value;

  TT_DEVICE void operator()(int64_t i) const {
    const int64_t at = i * kLanes;
    if (at + kLanes > n) {
      for (int64_t j = at; j < n; ++j) to[j] = value;
      return;
    }
    Vector<T> values;
    for (int lane = 0; lane < kLanes; ++lane) values.at[lane] = value;
    store_vector(to + at, values);
  }
};

template <typename T>
struct FillAnyLayout {
  Layout<1> layout;
  T* to;
  T value;
  TT_DEVICE void operator()(int64_t i) const { to[layout.offsets(i).at[0]] = value; }
};

template <typename T>
void fill_elements(const Tensor& dst, T value) {
  const Queue queue = queue_of(dst);
  const Layout<1> layout(dst.sizes(), {dst.strides()});
  const int64_t n = dst.numel();
  constexpr int kLanes = Vector<T>::kLanes;
  if (!layout.is_linear()) return for_each(queue, n, FillAnyLayout<T>{layout, dst.data_as<T>(), value});
  if (value == T(0)) return queue.fill(dst.data(), 0, static_cast<size_t>(n) * sizeof(T));
  if (!is_aligned(dst.data())) return for_each(queue, n, FillAnyLayout<T>{layout, dst.data_as<T>(), value});
  for_each(queue, (n + kLanes - 1) / kLanes, FillVectors<T>{n, dst.data_as<T>(), value});
}

// Converts a number to an element of type E.
template <typename E>
E element_of(const Scalar& value) {
  if (!value.is_real()) return convert<E>(Complex<double>(value.to_complex().real(), value.to_complex().imag()));
  const bool beyond = value.is_beyond_int() && !std::is_integral_v<E>;
  if (value.category() == Category::kFloating || beyond) return convert<E>(value.to_double());
  return convert<E>(value.to_int());
}

// Converts a number to an element of `dtype` and returns the element's bits.
template <typename T>
T bits_of(const Scalar& value, DType dtype) {
  T bits{};
  const auto take = [&]<typename E>(std::type_identity<E>) {
    const E element = element_of<E>(value);
    std::memcpy(static_cast<void*>(&bits), &element, std::min(sizeof(T), sizeof(E)));
  };
  is_float8(dtype) ? with_float8(dtype, take) : with_any_element(dtype, take);
  return bits;
}

}  // namespace

void fill_with(const Tensor& dst, const Scalar& value) {
  if (dst.numel() == 0) return;
  with_bits(dst.dtype(),
            [&]<typename T>(std::type_identity<T>) { fill_elements(dst, bits_of<T>(value, dst.dtype())); });
}

}  // namespace tt::cuda
