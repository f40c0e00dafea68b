// int8_convolution: convolutions of quantized integers with 32-bit sums.
#include <algorithm>

#include "kernels/cpu/iteration/contiguous.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/clones.h"
#include "kernels/cpu/quantized/int8_patches.h"

namespace tt::cpu {
namespace {

// The results of n outputs of a channel: sums + shift, minus the totals of their patches times the zero point.
TT_CLONES void finish_channel(int64_t n, const int32_t* sums, int64_t step, int32_t shift, const int32_t* totals,
                              int32_t point, int32_t* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = sums[i * step] + shift;
  if (!totals) return;
  for (int64_t i = 0; i < n; ++i) to[i] -= totals[i] * point;
}

void store_block(const Int8Convolution& c, const Int8Patches& p, int32_t* out) {
  const Int8Block& t = p.block;
  const int64_t outputs = c.outputs();
  for (int64_t i = 0, run = 0; i < t.rows; i += run) {
    const int64_t image = (p.first + i) / outputs, output = (p.first + i) % outputs;
    run = std::min(t.rows - i, outputs - output);  // outputs of one image
    for (int64_t j = 0; j < t.columns; ++j) {
      const int32_t shift = p.input_point * (p.depth * p.points[j] - t.weights[j]);
      finish_channel(run, t.sums + i * t.step + j, t.step, shift, p.totals ? p.totals + i : nullptr, p.points[j],
                     out + (image * c.out_channels_of_all() + p.channel + j) * outputs + output);
    }
  }
}

}  // namespace

void int8_convolution(const Tensor& input, const Tensor& weight, const Tensor& zero_point,
                      const Tensor& weight_zero_point, absl::Span<const int64_t> stride,
                      absl::Span<const int64_t> padding, absl::Span<const int64_t> dilation, int64_t groups,
                      Tensor& out) {
  if (out.numel() == 0) return;
  const ConvolutionParams params(stride, padding, dilation, groups);
  const Int8Convolution c(input.sizes(), weight.sizes(), out.sizes(), params);
  auto* to = out.data_as<int32_t>();
  if (weight.numel() == 0) {
    std::fill_n(to, out.numel(), 0);
    return;
  }
  const int64_t point = integer_of(zero_point);
  const Tensor w = contiguous_as(weight, DType::kInt8);
  const Tensor points = integers(weight_zero_point, weight.size(0), "weight_zero_point");
  if (c.in_channels == 1) {
    multiply_taps(c, as_unsigned(input, point), w, points.data_as<int32_t>(), to);
  } else {
    multiply_patches(c, input, point, w, points.data_as<int32_t>(),
                     [&](const Int8Patches& p) { store_block(c, p, to); });
  }
}

}  // namespace tt::cpu
