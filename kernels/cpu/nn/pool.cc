// Pooling over the last two dimensions. Planes are processed separately.
#include <algorithm>
#include <limits>
#include <optional>

#include "engine/device/parallel.h"
#include "engine/schema/layout.h"
#include "kernels/common/iteration/element.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/pool_loops.h"

namespace tt::cpu {
namespace {

// Minimum number of elements per core: about 10 us of pooling.
constexpr int64_t kGrain = 1 << 15;

using List = absl::Span<const int64_t>;

// Calls f(index of the plane) on the thread pool for every plane; `work` is the number of elements per plane.
template <typename F>
void for_each_plane(int64_t planes, int64_t work, F&& f) {
  parallel_for(planes, std::max<int64_t>(1, kGrain / std::max<int64_t>(work, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) f(p);
  });
}

// Calls f with the element type of the planes. Requires that 16-bit floats were converted.
template <typename F>
void with_ordered(DType dtype, F&& f) {
  with_element(dtype, [&]<typename T>(std::type_identity<T>) {
    if constexpr (std::is_arithmetic_v<T>)
      f(std::type_identity<T>());
    else
      fail_max_pool(dtype);
  });
}

// Computes the gradients of all planes of `out`. add(p, g, dx) accumulates plane p; `g` and `dx` point to the plane's
// gradients.
template <typename F>
void backward_planes(const Tensor& grad, Tensor& out, F&& add) {
  const Tensor g = as_accumulate_type(grad);
  const int64_t from = area(last_two(grad.sizes())), to = area(last_two(out.sizes()));
  check_same_planes(grad.sizes(), out.sizes());
  AccumulateBuffer result(out);
  with_real(g.dtype(), [&]<typename T>(std::type_identity<T>) {
    T* dx = result.tensor().data_as<T>();
    for_each_plane(planes(out.sizes()), to, [&](int64_t p) {
      std::fill(dx + p * to, dx + (p + 1) * to, T(0));
      add(p, g.data_as<T>() + p * from, dx + p * to);
    });
  });
  result.copy_to_output();
}

// Computes the means of all planes. mean(x, y) processes the plane of inputs `x` and of outputs `y`. Means of integers
// are truncated when stored.
template <typename F>
void average(const Tensor& input, Tensor& out, F&& mean) {
  const DType computed = is_integral(out.dtype()) ? DType::kFloat64 : accumulate_type(out.dtype());
  const Tensor x = contiguous_as(input, computed);
  const int64_t from = area(last_two(input.sizes())), to = area(last_two(out.sizes()));
  AccumulateBuffer result(out, computed);
  with_real(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    T* y = result.tensor().data_as<T>();
    for_each_plane(planes(out.sizes()), from, [&](int64_t p) { mean(x.data_as<T>() + p * from, y + p * to); });
  });
  result.copy_to_output();
}

// Computes the maxima of all planes. find(x, y, index) processes the plane of inputs `x`, outputs `y` and indices
// `index`.
template <typename F>
void largest(const Tensor& input, Tensor& output, Tensor& indices, F&& find) {
  const Tensor x = as_accumulate_type(input);
  const int64_t from = area(last_two(input.sizes())), to = area(last_two(output.sizes()));
  check(from <= std::numeric_limits<int32_t>::max(), "a plane of ", from, " elements is too large to pool");
  AccumulateBuffer result(output), places(indices);
  with_ordered(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    T* y = result.tensor().data_as<T>();
    for_each_plane(planes(output.sizes()), from, [&](int64_t p) {
      find(x.data_as<T>() + p * from, y + p * to, places.tensor().data_as<int64_t>() + p * to);
    });
  });
  result.copy_to_output();
  places.copy_to_output();
}

// Max pooling of images whose channels are neighbours, if the results have the same layout. Returns whether it was
// done.
bool pool_channels_last(const Window& w, const Tensor& input, const Tensor& output, const Tensor& indices) {
  const auto is_last = [](const Tensor& t) { return !t.is_contiguous() && is_channels_last(t.sizes(), t.strides()); };
  const bool has_dtype = input.dtype() == DType::kFloat32 || input.dtype() == DType::kFloat64;
  if (!has_dtype || input.dim() != 4 || !is_last(input) || !is_channels_last(output.sizes(), output.strides()) ||
      !is_channels_last(indices.sizes(), indices.strides())) {
    return false;
  }
  const int64_t channels = input.size(1), in = area(w.in) * channels, row = w.out[1] * channels;
  with_real(input.dtype(), [&]<typename T>(std::type_identity<T>) {
    for_each_plane(input.size(0) * w.out[0], in / std::max<int64_t>(w.out[0], 1), [&](int64_t p) {
      max_row_of_channels(w, channels, p % w.out[0], input.data_as<T>() + p / w.out[0] * in,
                          output.data_as<T>() + p * row, indices.data_as<int64_t>() + p * row);
    });
  });
  return true;
}

// Throws Error (IndexError) unless every index is in [0, size). The first pass has no branch, so that it vectorises;
// the second finds the index for the message.
void check_inside(const Tensor& index, int64_t size) {
  const int64_t* at = index.data_as<int64_t>();
  bool outside = false;
  for (int64_t i = 0; i < index.numel(); ++i) outside |= static_cast<uint64_t>(at[i]) >= static_cast<uint64_t>(size);
  if (!outside) return;
  while (*at >= 0 && *at < size) ++at;
  fail(ErrorKind::kIndex, pool_index_error(*at, size));
}

}  // namespace

void max_pool2d_with_indices(const Tensor& input, List kernel_size, std::optional<List> stride, List padding,
                             List dilation, bool, Tensor& output, Tensor& indices) {
  if (output.numel() == 0) return;
  const Window w = window(input.sizes(), output.sizes(), kernel_size, stride, padding, dilation);
  if (pool_channels_last(w, input, output, indices)) return;
  largest(input, output, indices, [&](auto* x, auto* y, int64_t* index) { max_plane(w, x, y, index); });
}

void max_pool_values(const Tensor& input, List kernel_size, std::optional<List> stride, List padding, List dilation,
                     bool, Tensor& out) {
  if (out.numel() == 0) return;
  const Window w = window(input.sizes(), out.sizes(), kernel_size, stride, padding, dilation);
  const Tensor x = as_accumulate_type(input);
  const int64_t from = area(w.in), to = area(w.out);
  AccumulateBuffer result(out);
  with_ordered(x.dtype(), [&]<typename T>(std::type_identity<T>) {
    T* y = result.tensor().data_as<T>();
    for_each_plane(planes(out.sizes()), from, [&](int64_t p) { max_values(w, x.data_as<T>() + p * from, y + p * to); });
  });
  result.copy_to_output();
}

void max_pool2d_backward(const Tensor& grad, const Tensor& indices, List, Tensor& out) {
  const Tensor index = contiguous_as(indices, DType::kInt64);
  check_pool_indices(index, grad);
  check_inside(index, area(last_two(out.sizes())));
  const Window w{last_two(out.sizes()), last_two(grad.sizes()), {}, {}};
  const int64_t step = area(w.out);
  backward_planes(grad, out, [&](int64_t p, const auto* g, auto* dx) {
    max_plane_backward(w, g, index.data_as<int64_t>() + p * step, dx);
  });
}

void avg_pool2d(const Tensor& input, List kernel_size, std::optional<List> stride, List padding, bool,
                bool count_include_pad, std::optional<int64_t> divisor_override, Tensor& out) {
  if (out.numel() == 0) return;
  const Window w = window(input.sizes(), out.sizes(), kernel_size, stride, padding);
  const Divisor by(count_include_pad, divisor_override);
  average(input, out, [&](const auto* x, auto* y) { average_plane(w, by, x, y); });
}

void avg_pool2d_backward(const Tensor& grad, List, List kernel_size, std::optional<List> stride, List padding, bool,
                         bool count_include_pad, std::optional<int64_t> divisor_override, Tensor& out) {
  const Window w = window(out.sizes(), grad.sizes(), kernel_size, stride, padding);
  const Divisor by(count_include_pad, divisor_override);
  backward_planes(grad, out, [&](int64_t, const auto* g, auto* dx) { average_plane_backward(w, by, g, dx); });
}

void adaptive_avg_pool2d(const Tensor& input, List, Tensor& out) {
  const Pair in = last_two(input.sizes()), to = last_two(out.sizes());
  average(input, out, [&](const auto* x, auto* y) { adaptive_average_plane(in, to, x, y); });
}

void adaptive_avg_pool2d_backward(const Tensor& grad, List, Tensor& out) {
  const Pair in = last_two(out.sizes()), to = last_two(grad.sizes());
  backward_planes(grad, out, [&](int64_t, const auto* g, auto* dx) { adaptive_average_plane_backward(in, to, g, dx); });
}

void adaptive_max_pool2d_with_indices(const Tensor& input, List, Tensor& output, Tensor& indices) {
  const Pair in = last_two(input.sizes()), to = last_two(output.sizes());
  largest(input, output, indices, [&](auto* x, auto* y, int64_t* index) { adaptive_max_plane(in, to, x, y, index); });
}

}  // namespace tt::cpu
