// int8_convolution: convolutions of quantized integers, with 32-bit sums or 8-bit results. Groups of many output
// channels are products of patches with filters, others a sum per output. Inputs may have any layout.
#include "kernels/common/nn/convolution_shape.h"
#include "kernels/cuda/iteration/atomic_accumulate.h"
#include "kernels/cuda/iteration/copy.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch/index_divider.h"
#include "kernels/cuda/quantized/int8_product.h"
#include "kernels/cuda/quantized/requantize.h"

namespace tt::cuda {
namespace {

using Triple = ConvolutionShape::Triple;

constexpr int64_t kFewChannels = 8;  // below which a tile of the product is mostly empty

// Divides an index into coordinates of three dimensions. Captured by value.
class Coordinates {
 public:
  Coordinates(const Triple& sizes, int64_t end) : sizes_(sizes), by_last_(sizes[2], end), by_middle_(sizes[1], end) {}
  TT_DEVICE void of(int64_t index, int64_t (&at)[3]) const {
    const int64_t rows = by_last_.quotient(index);
    at[2] = index - rows * sizes_[2];
    at[0] = by_middle_.quotient(rows);
    at[1] = rows - at[0] * sizes_[1];
  }

 private:
  Triple sizes_;
  IndexDivider by_last_, by_middle_;
};

// The elements of an input (images, channels, space) as signed integers. Captured by value.
struct Pixels {
  const uint8_t* data;
  int64_t image_stride, channel_stride;
  Triple strides;
  uint32_t flip;

  explicit Pixels(const Tensor& t)
      : data(static_cast<const uint8_t*>(t.data())),
        image_stride(t.stride(0)),
        channel_stride(t.stride(1)),
        strides{},
        flip(t.dtype() == DType::kUInt8 ? 0x80u : 0u) {
    for (int64_t d = 2; d < t.dim(); ++d) strides[3 - t.dim() + d] = t.stride(d);
  }
  TT_DEVICE int32_t at(int64_t image, int64_t channel, const int64_t (&pixel)[3]) const {
    const int64_t place = image * image_stride + channel * channel_stride + pixel[0] * strides[0] +
                          pixel[1] * strides[1] + pixel[2] * strides[2];
    return static_cast<int8_t>(data[place] ^ flip);
  }
};

// The patches of outputs, of which each is a row of (channels of a group, taps), as rows of Int8Product. What is in the
// padding has the value of the zero point.
struct Patches {
  ConvolutionShape s;
  Pixels pixels;
  IndexDivider by_outputs, by_taps;
  Coordinates outputs, taps;
  int64_t depth;
  const int32_t* zero_point;
  int32_t shift;

  Patches(const ConvolutionShape& shape, const Tensor& input, const int32_t* zero)
      : s(shape),
        pixels(input),
        by_outputs(ConvolutionShape::product(s.out), s.images * ConvolutionShape::product(s.out)),
        by_taps(ConvolutionShape::product(s.kernel), s.in_channels * ConvolutionShape::product(s.kernel)),
        outputs(s.out, ConvolutionShape::product(s.out)),
        taps(s.kernel, ConvolutionShape::product(s.kernel)),
        depth(s.in_channels * ConvolutionShape::product(s.kernel)),
        zero_point(zero),
        shift(input.dtype() == DType::kUInt8 ? 128 : 0) {}

  // Element p of the patch of output `out` in `image`.
  TT_DEVICE int32_t element(int64_t group, int64_t image, const int64_t (&out)[3], int64_t p) const {
    const int64_t channel = by_taps.quotient(p);
    int64_t at[3];
    taps.of(p - channel * ConvolutionShape::product(s.kernel), at);
    bool inside = true;
    for (int d = 0; d < 3; ++d) {
      at[d] = out[d] * s.stride[d] - s.padding[d] + at[d] * s.dilation[d];
      inside = inside && at[d] >= 0 && at[d] < s.in[d];
    }
    return inside ? pixels.at(image, group * s.in_channels + channel, at) : *zero_point - shift;
  }
  TT_DEVICE int64_t output_of(int64_t row, int64_t (&at)[3]) const {
    const int64_t image = by_outputs.quotient(row);
    outputs.of(row - image * ConvolutionShape::product(s.out), at);
    return image;
  }
  TT_DEVICE uint32_t word(int64_t group, int64_t row, int64_t p) const {
    int64_t out[3];
    const int64_t image = output_of(row, out);
    uint32_t word = 0;
    for (int e = 0; e < 4 && p + e < depth; ++e) {
      word |= (static_cast<uint32_t>(element(group, image, out, p + e)) & 255u) << (8 * e);
    }
    return word;
  }
};

// Where a result is stored whose spatial dimensions are adjacent in memory.
struct Place {
  IndexDivider by_outputs;
  int64_t outputs, image_stride, channel_stride, stride;

  Place(const ConvolutionShape& s, const Tensor& out, bool channels_last)
      : by_outputs(ConvolutionShape::product(s.out), s.images * ConvolutionShape::product(s.out)),
        outputs(ConvolutionShape::product(s.out)),
        image_stride(out.size(1) * outputs),
        channel_stride(channels_last ? 1 : outputs),
        stride(channels_last ? out.size(1) : 1) {}
  TT_DEVICE int64_t of(int64_t row, int64_t channel) const {
    const int64_t image = by_outputs.quotient(row);
    return image * image_stride + (row - image * outputs) * stride + channel * channel_stride;
  }
};

struct StoreSums {
  int32_t* out;
  Place place;

  TT_DEVICE void operator()(int64_t row, int64_t channel, int32_t sum) const { out[place.of(row, channel)] = sum; }
};

struct StoreRequantized {
  uint8_t* out;
  Place place;
  Requantization requantize;

  TT_DEVICE void operator()(int64_t row, int64_t channel, int32_t sum) const {
    out[place.of(row, channel)] = requantize(channel, sum);
  }
};

// Sums each output of each channel.
template <typename Store>
struct DirectSum {
  Patches patches;
  const int8_t* weight;
  PerColumn<int32_t> points;
  IndexDivider by_rows;
  int64_t rows;
  Store store;

  TT_DEVICE void operator()(int64_t i) const {
    const int64_t channel = by_rows.quotient(i), row = i - channel * rows, group = channel / patches.s.out_channels;
    int64_t out[3];
    const int64_t image = patches.output_of(row, out);
    const int32_t zero = *patches.zero_point - patches.shift, point = points.at(channel);
    uint32_t sum = 0;  // wraps around
    for (int64_t p = 0; p < patches.depth; ++p) {
      sum += static_cast<uint32_t>(patches.element(group, image, out, p) - zero) *
             (static_cast<uint32_t>(weight[channel * patches.depth + p]) - static_cast<uint32_t>(point));
    }
    store(row, channel, static_cast<int32_t>(sum));
  }
};

template <typename Store>
void convolve(const ConvolutionShape& s, const Tensor& input, const Tensor& weight, const Tensor& zero_point,
              const Tensor& weight_zero_point, const Store& store) {
  const int64_t channels = weight.size(0), rows = s.images * ConvolutionShape::product(s.out);
  const Tensor zero = zero_point_for(zero_point, input.dtype());
  const Tensor points = weight_zero_points(weight_zero_point, channels), w = contiguous_as(weight, DType::kInt8);
  const Patches patches(s, input, zero.data_as<int32_t>());
  const Queue queue = queue_of(input);
  if (s.out_channels < kFewChannels) {
    for_each(queue, rows * channels,
             DirectSum<Store>{patches, w.data_as<int8_t>(), per_column<int32_t>(points),
                              IndexDivider(rows, rows * channels), rows, store});
    return;
  }
  multiply_int8(queue, Int8Product<Patches, Store>{patches,
                                                   {static_cast<const uint8_t*>(w.data()), patches.depth, 0},
                                                   per_column<int32_t>(zero),
                                                   per_column<int32_t>(points),
                                                   rows,
                                                   s.out_channels,
                                                   patches.depth,
                                                   s.groups,
                                                   store});
}

// The results of filters without elements.
void requantize_zeros(const Queue& queue, int64_t rows, int64_t channels, const StoreRequantized& store) {
  for_each(queue, rows * channels, [=] TT_DEVICE(int64_t i) { store(i / channels, i % channels, 0); });
}

}  // namespace

void int8_convolution(const Tensor& input, const Tensor& weight, const Tensor& zero_point,
                      const Tensor& weight_zero_point, absl::Span<const int64_t> stride,
                      absl::Span<const int64_t> padding, absl::Span<const int64_t> dilation, int64_t groups,
                      Tensor& out) {
  if (out.numel() == 0) return;
  const ConvolutionParams params(stride, padding, dilation, groups);
  if (weight.numel() == 0) return fill_zeros(queue_of(out), out);
  const ConvolutionShape s(input.sizes(), weight.sizes(), out.sizes(), params);
  convolve(s, input, weight, zero_point, weight_zero_point, StoreSums{out.data_as<int32_t>(), Place(s, out, false)});
}

void int8_convolution_quantized(const Tensor& input, const Tensor& weight, const Tensor& zero_point,
                                const Tensor& weight_zero_point, absl::Span<const int64_t> stride,
                                absl::Span<const int64_t> padding, absl::Span<const int64_t> dilation, int64_t groups,
                                const Tensor& scale, const Tensor& bias, double output_scale, int64_t output_zero_point,
                                int64_t quant_min, int64_t quant_max, bool /*is_signed*/, Tensor& out) {
  if (out.numel() == 0) return;
  const ConvolutionParams params(stride, padding, dilation, groups);
  const ConvolutionShape s(input.sizes(), weight.sizes(), out.sizes(), params);
  const int64_t channels = weight.size(0);
  const Tensor scales = column_numbers(scale, channels, "scale"), added = column_numbers(bias, channels, "bias");
  const bool last = has_channels_last(out);
  const Tensor result = last || out.is_contiguous() ? out : empty(out.sizes(), out.dtype(), out.device());
  const StoreRequantized store{
      static_cast<uint8_t*>(result.data()),
      Place(s, out, last),
      {per_column<float>(scales), per_column<float>(added), static_cast<float>(output_scale),
       static_cast<float>(output_zero_point), static_cast<float>(quant_min), static_cast<float>(quant_max)}};
  if (weight.numel() == 0) {
    requantize_zeros(queue_of(out), out.numel() / channels, channels, store);
  } else {
    convolve(s, input, weight, zero_point, weight_zero_point, store);
  }
  if (!result.same(out)) copy(result, out);
}

}  // namespace tt::cuda
