// int8_convolution: convolutions of quantized integers with 32-bit sums, as products of patches.
//
// The input is copied with its channels last; patches of some thousand outputs are gathered and multiplied at a time.
// Groups of one channel are computed directly.
#include <algorithm>
#include <cstring>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "kernels/common/nn/convolution_shape.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/quantized/int8_dot.h"
#include "kernels/cpu/quantized/int8_operands.h"
#include "kernels/cpu/quantized/int8_weights.h"

namespace tt::cpu {
namespace {

constexpr int64_t kPatchBytes = int64_t{2} << 20;  // of the patches that are gathered at a time

struct Int8Convolution : ConvolutionShape {
  using ConvolutionShape::ConvolutionShape;

  int64_t pixels() const { return product(in); }
  int64_t outputs() const { return product(out); }
  int64_t taps() const { return product(kernel); }
  int64_t channels() const { return groups * in_channels; }

  // The coordinates of an output or a tap.
  static Triple coordinates(int64_t index, const Triple& sizes) {
    return {index / (sizes[1] * sizes[2]), index / sizes[2] % sizes[1], index % sizes[2]};
  }
  // Whether the patches are the input's pixels.
  bool is_pointwise() const {
    return groups == 1 && taps() == 1 && product(stride) == 1 && padding == Triple{} && in == out;
  }
};

// (images, channels, pixels) to (images, pixels, channels).
Tensor channels_last(const Int8Convolution& c, const Tensor& input) {
  Tensor result = empty(Sizes{input.numel()}, DType::kUInt8, input.device());
  const int64_t pixels = c.pixels(), channels = c.channels();
  const uint8_t* from = input.data_as<const uint8_t>();
  uint8_t* to = result.data_as<uint8_t>();
  constexpr int64_t kBlock = 64;
  const int64_t blocks = (pixels + kBlock - 1) / kBlock;
  parallel_for(c.images * blocks, std::max<int64_t>(1, (int64_t{1} << 14) / (channels * kBlock)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t image = task / blocks, first = task % blocks * kBlock;
                   const int64_t last = std::min(first + kBlock, pixels);
                   const uint8_t* x = from + image * channels * pixels;
                   uint8_t* y = to + image * channels * pixels;
                   for (int64_t ch = 0; ch < channels; ++ch) {
                     for (int64_t p = first; p < last; ++p) y[p * channels + ch] = x[ch * pixels + p];
                   }
                 }
               });
  return result;
}

// Whether a tensor (images, channels, pixels...) has its channels last in memory, without gaps.
bool has_channels_last(const Tensor& t) {
  int64_t stride = t.size(1);
  if (t.stride(1) != 1) return false;
  for (int64_t d = t.dim() - 1; d > 1; stride *= t.size(d--)) {
    if (t.stride(d) != stride) return false;
  }
  return t.stride(0) == stride;
}

// The operand as (images, pixels, channels).
UnsignedOperand pixels_first(const Int8Convolution& c, const Tensor& input, int64_t zero_point) {
  if (has_channels_last(input)) {
    const Geometry rows{Sizes{input.numel()}, Sizes{1}, input->offset};
    return as_unsigned(view_of(input, rows), zero_point);
  }
  UnsignedOperand a = as_unsigned(input, zero_point);
  a.values = channels_last(c, a.values);
  return a;
}

// Gathers the patches of outputs [first, first + count), counted over all images, for one group.
void gather(const Int8Convolution& c, int64_t group, const uint8_t* x, uint8_t zero_point, int64_t first, int64_t count,
            uint8_t* patches) {
  const int64_t outputs = c.outputs(), channels = c.in_channels, depth = c.taps() * channels, width = c.kernel[2];
  parallel_for(count, std::max<int64_t>(1, (int64_t{1} << 14) / depth), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = (first + i) / outputs;
      const uint8_t* from = x + image * c.pixels() * c.channels() + group * channels;
      Int8Convolution::Triple at = Int8Convolution::coordinates((first + i) % outputs, c.out);
      for (int d = 0; d < 3; ++d) at[d] = at[d] * c.stride[d] - c.padding[d];
      const bool is_run = c.groups == 1 && c.dilation[2] == 1 && at[2] >= 0 && at[2] + width <= c.in[2];
      uint8_t* to = patches + i * depth;
      for (int64_t row = 0; row < c.kernel[0] * c.kernel[1]; ++row, to += width * channels) {
        const int64_t plane_at = at[0] + row / c.kernel[1] * c.dilation[0];
        const int64_t row_at = at[1] + row % c.kernel[1] * c.dilation[1];
        if (plane_at < 0 || plane_at >= c.in[0] || row_at < 0 || row_at >= c.in[1]) {
          std::memset(to, zero_point, width * channels);
          continue;
        }
        const int64_t line = (plane_at * c.in[1] + row_at) * c.in[2];
        if (is_run) {
          std::memcpy(to, from + (line + at[2]) * channels, width * channels);
          continue;
        }
        for (int64_t t = 0; t < width; ++t) {
          const int64_t pixel = at[2] + t * c.dilation[2];
          if (pixel < 0 || pixel >= c.in[2])
            std::memset(to + t * channels, zero_point, channels);
          else
            std::memcpy(to + t * channels, from + (line + pixel) * c.channels(), channels);
        }
      }
    }
  });
}

// The sums of each patch's elements.
void patch_sums(int64_t count, int64_t depth, const uint8_t* patches, int32_t* sums) {
  parallel_for(count, std::max<int64_t>(1, (int64_t{1} << 16) / depth), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int32_t sum = 0;
      for (int64_t p = 0; p < depth; ++p) sum += patches[i * depth + p];
      sums[i] = sum;
    }
  });
}

// The results of n outputs of a channel: sums + shift, minus the totals of their patches times the zero point.
TT_CLONES void finish_channel(int64_t n, const int32_t* sums, int64_t step, int32_t shift, const int32_t* totals,
                              int32_t point, int32_t* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = sums[i * step] + shift;
  if (!totals) return;
  for (int64_t i = 0; i < n; ++i) to[i] -= totals[i] * point;
}

// `weight` is contiguous.
void by_products(const Int8Convolution& c, const Tensor& input, int64_t zero_point, const Tensor& weight,
                 const int32_t* points, int32_t* out) {
  const UnsignedOperand a = pixels_first(c, input, zero_point);
  const Tensor& x = a.values;
  const Tensor packed = packed_filters(weight, c.groups, c.images * c.outputs());
  const Tensor w = empty(Sizes{packed ? 0 : weight.numel()}, DType::kInt8, x.device());
  if (!packed) {
    taps_first(weight.size(0), c.in_channels, c.taps(), weight.data_as<const int8_t>(), w.data_as<int8_t>());
  }
  const int64_t outputs = c.outputs(), depth = c.taps() * c.in_channels, all = c.images * outputs;
  const int64_t step = std::clamp<int64_t>(kPatchBytes / depth, 1, all);
  Tensor patches = empty(Sizes{c.is_pointwise() ? 0 : step * depth}, DType::kUInt8, x.device());
  Tensor sums = empty(Sizes{step}, DType::kInt32, x.device());
  auto* gathered = patches.data_as<uint8_t>();
  for (int64_t group = 0; group < c.groups; ++group) {
    const int32_t* zero = points + group * c.out_channels;
    const bool symmetric = std::all_of(zero, zero + c.out_channels, [](int32_t n) { return n == 0; });
    for (int64_t first = 0; first < all; first += step) {
      const int64_t count = std::min(step, all - first);
      const uint8_t* buffer = gathered;
      if (c.is_pointwise())
        buffer = x.data_as<const uint8_t>() + first * depth;
      else
        gather(c, group, x.data_as<const uint8_t>(), static_cast<uint8_t>(a.zero_point), first, count, gathered);
      if (!symmetric) patch_sums(count, depth, buffer, sums.data_as<int32_t>());
      Int8Product product{count, c.out_channels, depth, buffer, depth, nullptr, depth};
      if (packed) {
        product.packed = packed.data_as<const int8_t>() + group * packed_weights_bytes(c.out_channels, depth);
      } else {
        product.b = w.data_as<const int8_t>() + group * c.out_channels * depth;
      }
      int8_product(product, [&](const Int8Block& t) {
        for (int64_t i = 0, run = 0; i < t.rows; i += run) {
          const int64_t at = first + t.row + i, image = at / outputs, output = at % outputs;
          run = std::min(t.rows - i, outputs - output);  // outputs of one image
          const int32_t* totals = symmetric ? nullptr : sums.data_as<int32_t>() + t.row + i;
          for (int64_t j = 0; j < t.columns; ++j) {
            const int64_t channel = group * c.out_channels + t.column + j;
            const int32_t point = zero[t.column + j];
            const int32_t shift = a.zero_point * (static_cast<int32_t>(depth) * point - t.weights[j]);
            finish_channel(run, t.sums + i * t.step + j, t.step, shift, totals, point,
                           out + (image * c.groups * c.out_channels + channel) * outputs + output);
          }
        }
      });
    }
  }
}

// Groups of one input channel: adds each tap's products to the outputs, row by row.
void by_taps(const Int8Convolution& c, const UnsignedOperand& a, const Tensor& weight, const int32_t* points,
             int32_t* out) {
  const int64_t taps = c.taps(), channels = c.groups * c.out_channels, outputs = c.outputs();
  const uint8_t* x = a.values.data_as<const uint8_t>();
  const int8_t* w = weight.data_as<const int8_t>();
  parallel_for(c.images * channels, std::max<int64_t>(1, (int64_t{1} << 14) / (outputs * taps)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t plane = begin; plane < end; ++plane) {
                   const int64_t image = plane / channels, channel = plane % channels;
                   const uint8_t* from = x + (image * c.groups + channel / c.out_channels) * c.pixels();
                   int32_t* to = out + plane * outputs;
                   std::fill_n(to, outputs, 0);
                   for (int64_t t = 0; t < taps; ++t) {
                     const int32_t factor = w[channel * taps + t] - points[channel];
                     const Int8Convolution::Triple tap = Int8Convolution::coordinates(t, c.kernel);
                     for (int64_t row = 0; row < c.out[0] * c.out[1]; ++row) {
                       const int64_t offset = tap[2] * c.dilation[2] - c.padding[2], stride = c.stride[2];
                       const int64_t depth_at = row / c.out[1] * c.stride[0] - c.padding[0] + tap[0] * c.dilation[0];
                       const int64_t row_at = row % c.out[1] * c.stride[1] - c.padding[1] + tap[1] * c.dilation[1];
                       if (depth_at < 0 || depth_at >= c.in[0] || row_at < 0 || row_at >= c.in[1]) continue;
                       const uint8_t* line = from + (depth_at * c.in[1] + row_at) * c.in[2];
                       const int64_t low = offset < 0 ? (-offset + stride - 1) / stride : 0;
                       const int64_t high =
                           std::min(c.out[2], c.in[2] > offset ? (c.in[2] - 1 - offset) / stride + 1 : 0);
                       for (int64_t i = low; i < high; ++i) {
                         to[row * c.out[2] + i] += (line[i * stride + offset] - a.zero_point) * factor;
                       }
                     }
                   }
                 }
               });
}

}  // namespace

void int8_convolution(const Tensor& input, const Tensor& weight, const Tensor& zero_point,
                      const Tensor& weight_zero_point, absl::Span<const int64_t> stride,
                      absl::Span<const int64_t> padding, absl::Span<const int64_t> dilation, int64_t groups,
                      Tensor& out) {
  if (out.numel() == 0) return;
  const ConvolutionParams params(stride, padding, dilation, groups);
  const Int8Convolution c(input.sizes(), weight.sizes(), out.sizes(), params);
  if (weight.numel() == 0) {
    std::fill_n(out.data_as<int32_t>(), out.numel(), 0);
    return;
  }
  const int64_t point = integer_of(zero_point);
  const Tensor w = contiguous_as(weight, DType::kInt8);
  const Tensor points = integers(weight_zero_point, weight.size(0), "weight_zero_point");
  if (c.in_channels == 1) {
    by_taps(c, as_unsigned(input, point), w, points.data_as<int32_t>(), out.data_as<int32_t>());
  } else {
    by_products(c, input, point, w, points.data_as<int32_t>(), out.data_as<int32_t>());
  }
}

}  // namespace tt::cpu
