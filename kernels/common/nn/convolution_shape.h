// ConvolutionShape: the sizes and parameters of a convolution, shared by its forward pass and both gradients.
#pragma once

#include <array>

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"

namespace tt {

using Space = absl::InlinedVector<int64_t, 3>;  // one number per spatial dimension

// Stride, padding, dilation and groups of a convolution.
struct ConvolutionParams {
  Space stride;
  Space padding;
  Space dilation;
  int64_t groups = 1;

  // Throws Error (RuntimeError) if a stride, dilation or the number of groups is not positive, or a padding is
  // negative. The shape rules have checked this; the loops over windows rely on it.
  ConvolutionParams(absl::Span<const int64_t> stride, absl::Span<const int64_t> padding,
                    absl::Span<const int64_t> dilation, int64_t groups)
      : stride(stride.begin(), stride.end()),
        padding(padding.begin(), padding.end()),
        dilation(dilation.begin(), dilation.end()),
        groups(groups) {
    bool valid = groups > 0;
    for (int64_t n : stride) valid = valid && n > 0;
    for (int64_t n : padding) valid = valid && n >= 0;
    for (int64_t n : dilation) valid = valid && n > 0;
    check(valid, "expected stride, dilation and groups > 0 and padding >= 0, got stride ", stride, ", dilation ",
          dilation, ", groups ", groups, " and padding ", padding);
  }
};

// Sizes and parameters, extended to three spatial dimensions. Missing leading dimensions have size 1.
struct ConvolutionShape {
  using Triple = std::array<int64_t, 3>;
  int64_t images, groups, in_channels, out_channels;  // channels are per group
  Triple in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};

  // The arguments are the sizes of the input `x` (N x C x space), of the weight `w` (O x C/groups x kernel) and of the
  // output `y` (N x O x space).
  ConvolutionShape(SizesView x, SizesView w, SizesView y, const ConvolutionParams& params)
      : images(x[0]), groups(params.groups), in_channels(w[1]), out_channels(w[0] / params.groups) {
    const size_t space = x.size() - 2;
    for (size_t i = 0; i < space; ++i) {
      const size_t at = 3 - space + i;
      in[at] = x[2 + i];
      out[at] = y[2 + i];
      kernel[at] = w[2 + i];
      stride[at] = params.stride[i];
      padding[at] = params.padding[i];
      dilation[at] = params.dilation[i];
    }
  }
  static constexpr int64_t product(const Triple& t) { return t[0] * t[1] * t[2]; }
};

// Whether a tensor (images, channels, pixels...) has its channels last in memory, without gaps.
inline bool has_channels_last(const Tensor& t) {
  int64_t stride = t.size(1);
  bool last = t.stride(1) == 1;
  for (int64_t d = t.dim() - 1; d > 1; stride *= t.size(d--)) last = last && t.stride(d) == stride;
  return last && t.stride(0) == stride;
}

}  // namespace tt
