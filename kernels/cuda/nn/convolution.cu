// Convolutions and their gradients, by cuDNN if it is available and supports the case, else by a direct sum per element
// of the result.
#include "engine/session/context.h"
#include "kernels/cuda/iteration/atomic_accumulate.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/floating.h"
#include "kernels/cuda/linalg/bias.h"
#include "kernels/cuda/runtime/dnn.h"

namespace tt::cuda {
namespace {

using List = absl::Span<const int64_t>;
using Triple = ConvolutionShape::Triple;

// Coordinates of an element: image, channel (among all groups), and position in the channel's three dimensions.
struct Coordinates {
  int64_t image, channel;
  int64_t at[3];

  TT_DEVICE Coordinates(int64_t i, int64_t channels, const Triple& size) {
    for (int d = 2; d >= 0; --d) {
      at[d] = i % size[d];
      i /= size[d];
    }
    channel = i % channels;
    image = i / channels;
  }
};

TT_DEVICE inline int64_t offset_in(const Triple& size, const int64_t (&at)[3]) {
  return (at[0] * size[1] + at[1]) * size[2] + at[2];
}
TT_DEVICE inline bool inside(const Triple& size, const int64_t (&at)[3]) {
  bool in = true;
  for (int d = 0; d < 3; ++d) in = in && at[d] >= 0 && at[d] < size[d];
  return in;
}

// Coordinates of element `k` of the convolution kernel.
struct Tap {
  int64_t at[3];

  TT_DEVICE Tap(const Triple& kernel, int64_t k)
      : at{k / (kernel[1] * kernel[2]), k / kernel[2] % kernel[1], k % kernel[2]} {}
};

// Computes the input position that the output at `out` reads through a tap. Returns false if it is in the padding.
TT_DEVICE inline bool input_of(const ConvolutionShape& s, const int64_t (&out)[3], const Tap& tap, int64_t (&in)[3]) {
  for (int d = 0; d < 3; ++d) in[d] = out[d] * s.stride[d] - s.padding[d] + tap.at[d] * s.dilation[d];
  return inside(s.in, in);
}
// Computes the output position that reads the input at `in` through a tap. Returns false if there is none.
TT_DEVICE inline bool output_of(const ConvolutionShape& s, const int64_t (&in)[3], const Tap& tap, int64_t (&out)[3]) {
  for (int d = 0; d < 3; ++d) {
    const int64_t reach = in[d] + s.padding[d] - tap.at[d] * s.dilation[d];
    if (reach < 0 || reach % s.stride[d] != 0) return false;
    out[d] = reach / s.stride[d];
  }
  return inside(s.out, out);
}

template <typename T, typename C>
void sum_forward(const Queue& queue, int64_t n, ConvolutionShape s, const T* x, const T* w, T* y) {
  const int64_t taps = ConvolutionShape::product(s.kernel), plane = ConvolutionShape::product(s.in);
  for_each(queue, n, [=] TT_DEVICE(int64_t i) {
    const Coordinates position(i, s.groups * s.out_channels, s.out);
    const int64_t group = position.channel / s.out_channels;
    const T* image = x + (position.image * s.groups + group) * s.in_channels * plane;
    const T* weights = w + position.channel * s.in_channels * taps;
    C sum = 0;
    for (int64_t k = 0; k < taps; ++k) {
      int64_t in[3];
      if (!input_of(s, position.at, Tap(s.kernel, k), in)) continue;
      const int64_t at = offset_in(s.in, in);
      for (int64_t c = 0; c < s.in_channels; ++c) {
        sum += convert<C>(image[c * plane + at]) * convert<C>(weights[c * taps + k]);
      }
    }
    y[i] = convert<T>(sum);
  });
}

template <typename T, typename C>
void sum_input(const Queue& queue, int64_t n, ConvolutionShape s, const T* g, const T* w, T* dx) {
  const int64_t taps = ConvolutionShape::product(s.kernel), plane = ConvolutionShape::product(s.out);
  for_each(queue, n, [=] TT_DEVICE(int64_t i) {
    const Coordinates position(i, s.groups * s.in_channels, s.in);
    const int64_t group = position.channel / s.in_channels, channel = position.channel % s.in_channels;
    const T* image = g + (position.image * s.groups + group) * s.out_channels * plane;
    const T* weights = w + (group * s.out_channels * s.in_channels + channel) * taps;
    C sum = 0;
    for (int64_t k = 0; k < taps; ++k) {
      int64_t out[3];
      if (!output_of(s, position.at, Tap(s.kernel, k), out)) continue;
      const int64_t at = offset_in(s.out, out);
      for (int64_t o = 0; o < s.out_channels; ++o) {
        sum += convert<C>(image[o * plane + at]) * convert<C>(weights[o * s.in_channels * taps + k]);
      }
    }
    dx[i] = convert<T>(sum);
  });
}

template <typename T, typename C>
void sum_weight(const Queue& queue, int64_t n, ConvolutionShape s, const T* g, const T* x, T* dw) {
  const int64_t taps = ConvolutionShape::product(s.kernel), terms = s.images * ConvolutionShape::product(s.out);
  for_each_group(queue, n, terms, [=] TT_DEVICE(Group & group) {
    const int64_t i = group.index(), channel = i / taps % s.in_channels, of = i / taps / s.in_channels;
    const Tap tap(s.kernel, i % taps);
    const int64_t first_in = of / s.out_channels * s.in_channels + channel;
    C sum = 0;
    for (int64_t term = group.rank(); term < terms; term += group.size()) {
      const Coordinates position(term, 1, s.out);
      int64_t in[3];
      if (!input_of(s, position.at, tap, in)) continue;
      const int64_t from = (position.image * s.groups * s.in_channels + first_in) * ConvolutionShape::product(s.in);
      const int64_t to = (position.image * s.groups * s.out_channels + of) * ConvolutionShape::product(s.out);
      sum += convert<C>(x[from + offset_in(s.in, in)]) * convert<C>(g[to + offset_in(s.out, position.at)]);
    }
    sum = group.reduce(sum, Add());
    if (group.rank() == 0) dw[i] = convert<T>(sum);
  });
}

enum class ConvolutionPass { kForward, kInput, kWeight };

// Computes one pass by direct sums. `a` and `b` are the operator's two tensor arguments, in order.
template <typename T, typename C>
void sum_directly(ConvolutionPass wanted, const Queue& queue, const ConvolutionShape& shape, const Tensor& a,
                  const Tensor& b, const Tensor& out) {
  const T *from = a.data_as<T>(), *with = b.data_as<T>();
  switch (wanted) {
    case ConvolutionPass::kForward: return sum_forward<T, C>(queue, out.numel(), shape, from, with, out.data_as<T>());
    case ConvolutionPass::kInput: return sum_input<T, C>(queue, out.numel(), shape, from, with, out.data_as<T>());
    case ConvolutionPass::kWeight: return sum_weight<T, C>(queue, out.numel(), shape, from, with, out.data_as<T>());
  }
}

bool convolve_by_library(ConvolutionPass wanted, const Queue& queue, const ConvolutionShape& shape, const Tensor& a,
                         const Tensor& b, const Tensor& out) {
  Dnn* library = is_floating(out.dtype()) ? dnn() : nullptr;
  if (!library) return false;
  DnnConvolution c{out.dtype(), shape, a.data(), b.data(), out.data(), Context::current().allow_convolution_tf32};
  switch (wanted) {
    case ConvolutionPass::kForward: return library->forward(queue, c);
    case ConvolutionPass::kInput: return library->input(queue, c);
    default: return library->weight(queue, c);
  }
}

// Integers are computed in int64. The result wraps around correctly when it is stored in a narrower type.
void convolve(ConvolutionPass wanted, const ConvolutionShape& shape, const Tensor& first, const Tensor& second,
              Tensor& out) {
  if (out.numel() == 0) return;
  const Queue queue = queue_of(out);
  if (first.numel() == 0 || second.numel() == 0) return fill_zeros(queue, out);
  const bool floating = is_floating(out.dtype());
  const DType dtype = floating ? out.dtype() : DType::kInt64;
  const Tensor a = contiguous_as(first, dtype), b = contiguous_as(second, dtype);
  if (convolve_by_library(wanted, queue, shape, a, b, out)) return;
  if (floating) {
    with_floating(dtype, [&]<typename T>(std::type_identity<T>) {
      sum_directly<T, AccumulateType<T>>(wanted, queue, shape, a, b, out);
    });
  } else {
    const Tensor sums = out.dtype() == dtype ? out : empty(out.sizes(), dtype, out.device());
    sum_directly<int64_t, int64_t>(wanted, queue, shape, a, b, sums);
    if (!sums.same(out)) copy(sums, out);
  }
}

}  // namespace

void convolution_forward(const Tensor& input, const Tensor& weight, const Tensor& bias, List stride, List padding,
                         List dilation, int64_t groups, Tensor& out) {
  const ConvolutionParams params(stride, padding, dilation, groups);
  convolve(ConvolutionPass::kForward, {input.sizes(), weight.sizes(), out.sizes(), params}, input, weight, out);
  if (out.numel() > 0) add_bias(contiguous(bias), out.numel() / (out.size(0) * out.size(1)), out);
}

void convolution_input(const Tensor& grad, const Tensor& weight, List, List stride, List padding, List dilation,
                       int64_t groups, Tensor& out) {
  const ConvolutionParams params(stride, padding, dilation, groups);
  convolve(ConvolutionPass::kInput, {out.sizes(), weight.sizes(), grad.sizes(), params}, grad, weight, out);
}

void convolution_weight(const Tensor& grad, const Tensor& input, List, List stride, List padding, List dilation,
                        int64_t groups, Tensor& out) {
  const ConvolutionParams params(stride, padding, dilation, groups);
  convolve(ConvolutionPass::kWeight, {input.sizes(), out.sizes(), grad.sizes(), params}, grad, input, out);
}

}  // namespace tt::cuda
