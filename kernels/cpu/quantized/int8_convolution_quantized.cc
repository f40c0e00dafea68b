// int8_convolution_quantized: convolutions of quantized integers with 8-bit results, whose sums are requantized while
// they are in the cache. Results are computed with their channels last, and transposed if they have another layout.
#include <algorithm>
#include <vector>

#include "engine/device/parallel.h"
#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/quantized/int8_patches.h"
#include "kernels/cpu/quantized/requantize.h"

namespace tt::cpu {
namespace {

// Adds the products of a pixel's channels with a tap's factors.
TT_CLONES void add_tap(int64_t n, const uint8_t* x, int32_t zero_point, const int32_t* factors, int32_t* sums) {
  for (int64_t i = 0; i < n; ++i) sums[i] += (x[i] - zero_point) * factors[i];
}

// Groups of one input and one output channel: the channels of an output together.
void by_channels(const Int8Convolution& c, const UnsignedOperand& a, const Tensor& weight, const int32_t* points,
                 const Requantization& requantization, uint8_t* out) {
  const int64_t taps = c.taps(), channels = c.groups, outputs = c.outputs();
  const Tensor factors = empty(Sizes{taps * channels}, DType::kInt32, weight.device());
  auto* factor = factors.data_as<int32_t>();
  const auto* w = weight.data_as<const int8_t>();
  for (int64_t t = 0; t < taps; ++t) {
    for (int64_t ch = 0; ch < channels; ++ch) factor[t * channels + ch] = w[ch * taps + t] - points[ch];
  }
  const auto* x = a.values.data_as<const uint8_t>();
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 15) / (channels * taps));
  parallel_for(c.images * outputs, grain, [&](int64_t begin, int64_t end) {
    std::vector<int32_t> sums(channels);
    for (int64_t i = begin; i < end; ++i) {
      const uint8_t* image = x + i / outputs * c.pixels() * channels;
      Int8Convolution::Triple at = Int8Convolution::coordinates(i % outputs, c.out);
      for (int d = 0; d < 3; ++d) at[d] = at[d] * c.stride[d] - c.padding[d];
      std::fill(sums.begin(), sums.end(), 0);
      for (int64_t t = 0; t < taps; ++t) {
        Int8Convolution::Triple pixel = Int8Convolution::coordinates(t, c.kernel);
        bool inside = true;
        for (int d = 0; d < 3; ++d) {
          pixel[d] = at[d] + pixel[d] * c.dilation[d];
          inside = inside && pixel[d] >= 0 && pixel[d] < c.in[d];
        }
        if (!inside) continue;
        const int64_t place = (pixel[0] * c.in[1] + pixel[1]) * c.in[2] + pixel[2];
        add_tap(channels, image + place * channels, a.zero_point, factor + t * channels, sums.data());
      }
      requantization.row(0, channels, sums.data(), points, 0, 0, points, out + i * channels);
    }
  });
}

// Groups of one input channel and several output channels.
void by_taps(const Int8Convolution& c, const UnsignedOperand& a, const Tensor& weight, const int32_t* points,
             const Requantization& requantization, uint8_t* out) {
  const int64_t channels = c.out_channels_of_all(), outputs = c.outputs();
  const Tensor sums = empty(Sizes{c.images * channels * outputs}, DType::kInt32, weight.device());
  multiply_taps(c, a, weight, points, sums.data_as<int32_t>());
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 14) / channels);
  parallel_for(c.images * outputs, grain, [&](int64_t begin, int64_t end) {
    std::vector<int32_t> row(channels);
    for (int64_t i = begin; i < end; ++i) {
      const int32_t* from = sums.data_as<const int32_t>() + i / outputs * channels * outputs + i % outputs;
      for (int64_t ch = 0; ch < channels; ++ch) row[ch] = from[ch * outputs];
      requantization.row(0, channels, row.data(), points, 0, 0, points, out + i * channels);
    }
  });
}

}  // namespace

void int8_convolution_quantized(const Tensor& input, const Tensor& weight, const Tensor& zero_point,
                                const Tensor& weight_zero_point, absl::Span<const int64_t> stride,
                                absl::Span<const int64_t> padding, absl::Span<const int64_t> dilation, int64_t groups,
                                const Tensor& scale, const Tensor& bias, double output_scale, int64_t output_zero_point,
                                int64_t quant_min, int64_t quant_max, bool /*is_signed*/, Tensor& out) {
  if (out.numel() == 0) return;
  const ConvolutionParams params(stride, padding, dilation, groups);
  const Int8Convolution c(input.sizes(), weight.sizes(), out.sizes(), params);
  const int64_t channels = c.out_channels_of_all(), point = integer_of(zero_point);
  const Requantization requantization(scale, bias, channels, output_scale, output_zero_point, quant_min, quant_max);
  const Tensor w = contiguous_as(weight, DType::kInt8);
  const Tensor points = integers(weight_zero_point, channels, "weight_zero_point");
  const auto* zero = points.data_as<const int32_t>();
  const bool last = has_channels_last(out);
  const Tensor rows = last ? out : empty(Sizes{out.numel()}, DType::kUInt8, out.device());
  auto* to = static_cast<uint8_t*>(rows.data());
  if (weight.numel() == 0) {
    const std::vector<int32_t> none(channels);
    for (int64_t i = 0; i < c.images * c.outputs(); ++i) {
      requantization.row(0, channels, none.data(), none.data(), 0, 0, none.data(), to + i * channels);
    }
  } else if (c.in_channels == 1 && c.out_channels == 1) {
    by_channels(c, pixels_first(c, input, point), w, zero, requantization, to);
  } else if (c.in_channels == 1) {
    by_taps(c, as_unsigned(input, point), w, zero, requantization, to);
  } else {
    multiply_patches(c, input, point, w, zero, [&](const Int8Patches& p) {
      const Int8Block& t = p.block;
      for (int64_t i = 0; i < t.rows; ++i) {
        requantization.row(p.channel, t.columns, t.sums + i * t.step, t.weights, p.input_point, p.centered(i), p.points,
                           to + (p.first + i) * channels + p.channel);
      }
    });
  }
  if (last) return;
  const Tensor result = out.is_contiguous() ? out : empty(out.sizes(), out.dtype(), out.device());
  transpose_bytes(c.images, c.outputs(), channels, to, static_cast<uint8_t*>(result.data()));
  if (!result.same(out)) copy(result, out);
}

}  // namespace tt::cpu
