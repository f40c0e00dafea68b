// Advanced indexing: reads and writes the elements of a Selection.
#include "kernels/common/iteration/element.h"
#include "kernels/cuda/index/selection.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/iteration/fill.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/access.h"
#include "kernels/cuda/launch/atomic.h"
#include "kernels/cuda/launch/layout.h"
#include "kernels/cuda/launch/vectors.h"

namespace tt::cuda {

namespace {

// Whether every `width` adjacent selected elements are contiguous and aligned to `width` elements.
bool selects_packs(const Tensor& x, const Selection& selection, int64_t width) {
  if (selection.sizes.empty() || selection.steps.back() != 1 || selection.offset_strides.back() != 0) return false;
  int64_t odd = selection.sizes.back();
  bool inner = false;  // a dimension of stride 1 was found
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (x.size(d) == 1) continue;
    if (x.stride(d) == 1 && !inner)
      inner = true;
    else
      odd |= x.stride(d);
  }
  const size_t bytes = static_cast<size_t>(width) * item_size(x.dtype());
  return odd % width == 0 && reinterpret_cast<uintptr_t>(x.data()) % bytes == 0;
}

template <typename T, int kWidth>
TT_DEVICE void move_together(const T* from, T* to) {
  if constexpr (kWidth == 1)
    *to = *from;
  else
    store_vector(to, load_vector<T, kWidth>(from));
}

template <typename T, int kWidth>
void pick_packs(const Tensor& x, const Selection& selection, Tensor& out) {
  Sizes sizes = selection.sizes, steps = selection.steps;
  if (kWidth > 1) {
    sizes.back() /= kWidth;
    steps.back() = kWidth;
  }
  const Layout<2> layout(sizes, {steps, selection.offset_strides});
  const int64_t* offsets = selection.offsets.data_as<int64_t>();
  const T* from = x.data_as<T>();
  T* to = out.data_as<T>();
  for_each(queue_of(out), out.numel() / kWidth, [=] TT_DEVICE(int64_t i) {
    const Offsets<2> at = layout.offsets(i);
    move_together<T, kWidth>(from + at.at[0] + offsets[at.at[1]], to + i * kWidth);
  });
}

}  // namespace

void copy_selected(const Tensor& x, const Selection& selection, Tensor& out) {
  with_bits(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    constexpr int kWidth = 16 / sizeof(T);
    selects_packs(x, selection, kWidth) ? pick_packs<T, kWidth>(x, selection, out)
                                        : pick_packs<T, 1>(x, selection, out);
  });
}

namespace {

// The layouts of values over a selection: strides of the values, steps in the target, and offsets.
Layout<3> layout_of(const Selection& selection, const Tensor& values) {
  const Sizes value_strides = broadcast_strides(values.sizes(), values.strides(), selection.sizes);
  return Layout<3>(selection.sizes, {value_strides, selection.steps, selection.offset_strides});
}

// If an element is selected several times, any of the values may be stored.
template <typename T>
void replace(const Tensor& out, const Selection& selection, const Tensor& values) {
  const Layout<3> layout = layout_of(selection, values);
  const int64_t* offsets = selection.offsets.data_as<int64_t>();
  const T* from = values.data_as<T>();
  T* to = out.data_as<T>();
  for_each(queue_of(out), selection.numel(), [=] TT_DEVICE(int64_t i) {
    const Offsets<3> at = layout.offsets(i);
    to[at.at[1] + offsets[at.at[2]]] = from[at.at[0]];
  });
}

}  // namespace

void replace_selected(const Tensor& out, const Selection& selection, const Tensor& values) {
  with_bits(out.dtype(), [&]<typename T>(std::type_identity<T>) { replace<T>(out, selection, values); });
}

namespace {

// The type in which sums of T are computed.
template <typename T>
using AccumulateType =
    std::conditional_t<std::is_same_v<T, double> || is_complex_v<T>, T,
                       std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, Bool>, int64_t, float>>;

// Adds factor * value to each selected element, in any order.
template <typename T>
void add(const Tensor& out, const Selection& selection, const Tensor& values, AccumulateType<T> factor) {
  const Layout<3> layout = layout_of(selection, values);
  const int64_t* offsets = selection.offsets.data_as<int64_t>();
  const T* from = values.data_as<T>();
  T* to = out.data_as<T>();
  for_each(queue_of(out), selection.numel(), [=] TT_DEVICE(int64_t i) {
    const Offsets<3> at = layout.offsets(i);
    const AccumulateType<T> value = factor * convert<AccumulateType<T>>(from[at.at[0]]);
    T* place = to + at.at[1] + offsets[at.at[2]];
    if constexpr (sizeof(T) >= 4)
      atomic_add(place, static_cast<T>(value));
    else
      atomic_update(place, [value](T old) { return convert<T>(convert<AccumulateType<T>>(old) + value); });
  });
}

}  // namespace

void add_selected(const Tensor& out, const Selection& selection, const Tensor& values, const Scalar& factor) {
  with_any_element(out.dtype(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<AccumulateType<T>, int64_t>)
      add<T>(out, selection, values, factor.to_int());
    else if constexpr (is_complex_v<T>)
      add<T>(out, selection, values, T(Complex<double>(factor.to_complex().real(), factor.to_complex().imag())));
    else
      add<T>(out, selection, values, static_cast<AccumulateType<T>>(factor.to_double()));
  });
}

void accumulate_selected(const Tensor& out, const Selection& selection, const Tensor& values) {
  add_selected(out, selection, values, Scalar(int64_t{1}));
}

namespace {

// Stores coordinate `d` of each position; `positions` are row-major indices into `input`.
void write_coordinates(const Tensor& positions, const Tensor& input, int64_t d, const Tensor& out) {
  const int64_t ndim = input.dim(), size = input.size(d), stride = contiguous_strides(input.sizes())[d];
  const int64_t* from = positions.data_as<int64_t>();
  int64_t* to = out.data_as<int64_t>() + d;
  for_each(queue_of(out), positions.numel(), [=] TT_DEVICE(int64_t i) { to[i * ndim] = from[i] / stride % size; });
}

}  // namespace

void nonzero(const Tensor& input, Tensor& out) {
  const Tensor positions = offsets_of_true(input, contiguous_strides(input.sizes()));
  out = empty({positions.numel(), input.dim()}, DType::kInt64, input.device());
  if (positions.numel() == 0) return;
  for (int64_t d = 0; d < input.dim(); ++d) write_coordinates(positions, input, d, out);
}

}  // namespace tt::cuda
