// Rules for sliding windows: convolutions and pooling.
#include <algorithm>
#include <iterator>

#include "engine/schema/checked_math.h"
#include "engine/schema/error.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt::shape_rules {
namespace {

const Sizes& sizes_of(const Arg& tensor) { return tensor.tensor->sizes; }

// The window positions along one dimension. All values except the input's size are below kLimit.
struct Window {
  SymInt kernel, stride = 1, padding = 0, dilation = 1;

  SymInt extent() const { return dilation * (kernel - 1) + 1; }
  SymInt output_size(SymInt size, bool ceil_mode = false) const {
    // Rounds down, also below 0, because with ceil_mode a window may be larger than the padded input.
    SymInt span = checked_add(checked_add(size, 2 * padding) - extent(), ceil_mode ? stride - 1 : SymInt(0));
    SymInt n = (span >= 0 ? span / stride : -((stride - 1 - span) / stride)) + 1;
    // A window must start inside the input or its left padding.
    return ceil_mode && (n - 1) * stride >= size + padding ? n - 1 : n;
  }
};

constexpr int64_t kLimit = int64_t{1} << 28;

void check_list(SizesView list, size_t n, SymInt min, std::string_view what) {
  check(list.size() == n, "expected ", what, " to be a single integer value or a list of ", n, " values, but got ",
        list);
  for (SymInt v : list) {
    check(v >= min && is_within(v, kLimit - 1), min > 0 ? "non-positive " : "negative ", what,
          " is not supported, got ", list);
  }
}

void check_windows(size_t space, SizesView stride, SizesView padding, SizesView dilation, SymInt groups) {
  check_list(stride, space, 1, "stride");
  check_list(padding, space, 0, "padding");
  check_list(dilation, space, 1, "dilation");
  check(groups > 0, "non-positive groups is not supported, got ", groups);
}

Sizes convolved(SizesView x, SizesView w, const Arg& bias, SizesView stride, SizesView padding, SizesView dilation,
                SymInt groups) {
  const size_t space = w.size() - 2;
  check_windows(space, stride, padding, dilation, groups);
  check(w[0] % groups == 0 && w[0] >= groups, "Given groups=", groups, ", expected weight to be at least ", groups,
        " at dimension 0 and divisible by it, but got weight of size ", w, " instead");
  const SymInt channels = checked_mul(w[1], groups);
  check(x[1] == channels, "Given groups=", groups, ", weight of size ", w, ", expected input", x, " to have ", channels,
        " channels, but got ", x[1], " channels instead");
  check(bias.is_none() || (sizes_of(bias).size() == 1 && sizes_of(bias)[0] == w[0]), "Given weight of size ", w,
        ", expected bias to be 1-dimensional with ", w[0], " elements, but got bias of size ",
        bias.is_none() ? SizesView() : SizesView(sizes_of(bias)), " instead");
  Sizes result{x[0], w[0]};
  for (size_t i = 0; i < space; ++i) {
    const Window window{w[2 + i], stride[i], padding[i], dilation[i]};
    check(w[2 + i] > 0 && is_within(w[2 + i], kLimit - 1), "expected a non-empty kernel, got weight of size ", w);
    const SymInt padded = checked_add(x[2 + i], 2 * padding[i]);
    check(window.extent() <= padded, "Calculated padded input size per channel: ", padded,
          ". Kernel size: ", window.extent(), ". Kernel size can't be greater than actual input size");
    result.push_back(window.output_size(x[2 + i]));
  }
  return result;
}

void check_batched(SizesView x, SizesView w) {
  check(w.size() >= 3 && w.size() <= 5, "Expected a weight of 3 to 5 dimensions, got ", w);
  check(x.size() == w.size(), "Expected a batch of ", w.size(), " dimensions, got ", x);
}

// `input`'s sizes with a batch dimension, which is added if missing.
Sizes batched(const Arg& input, const Arg& weight, int64_t space, std::string_view op) {
  Sizes x = sizes_of(input);
  const int64_t n = static_cast<int64_t>(x.size());
  check(n == space + 1 || n == space + 2, "Expected ", space + 1, "D (unbatched) or ", space + 2,
        "D (batched) input to ", op, space, "d, but got input of size: ", x);
  check(static_cast<int64_t>(sizes_of(weight).size()) == space + 2, "Expected a ", space + 2,
        "-dimensional weight, but got weight of size ", sizes_of(weight));
  if (n == space + 1) x.insert(x.begin(), 1);
  return x;
}

Sizes as_given(const Arg& input, Sizes result) {
  if (sizes_of(input).size() < result.size()) result.erase(result.begin());
  return result;
}

}  // namespace

Sizes convolution(const Arg& input, const Arg& weight, const Arg& bias, SizesView stride, SizesView padding,
                  SizesView dilation, SymInt groups) {
  check_batched(sizes_of(input), sizes_of(weight));
  return convolved(sizes_of(input), sizes_of(weight), bias, stride, padding, dilation, groups);
}

Sizes int8_convolution(const Arg& input, const Arg& weight, SizesView stride, SizesView padding, SizesView dilation,
                       SymInt groups) {
  return convolution(input, weight, Arg(), stride, padding, dilation, groups);
}

Sizes convolution_input(const Arg& grad, const Arg& weight, SizesView size, SizesView stride, SizesView padding,
                        SizesView dilation, SymInt groups) {
  check_batched(size, sizes_of(weight));
  Sizes expected = convolved(sizes(size), sizes_of(weight), Arg(), stride, padding, dilation, groups);
  check(sizes_of(grad) == expected, "Expected a gradient of size ", expected, ", got ", sizes_of(grad));
  return sizes(size);
}

Sizes convolution_weight(const Arg& grad, const Arg& input, SizesView size, SizesView stride, SizesView padding,
                         SizesView dilation, SymInt groups) {
  check_batched(sizes_of(input), size);
  Sizes expected = convolved(sizes_of(input), sizes(size), Arg(), stride, padding, dilation, groups);
  check(sizes_of(grad) == expected, "Expected a gradient of size ", expected, ", got ", sizes_of(grad));
  return sizes(size);
}

Sizes fused_convolution(const Arg& input, const Arg& weight, const Arg& bias, SizesView stride, SizesView padding,
                        SizesView dilation, SymInt groups, const Arg& running_mean, const Arg& running_var,
                        const Arg& norm_weight, const Arg& norm_bias, const Arg& added, std::string_view activation) {
  Sizes result = convolution(input, weight, bias, stride, padding, dilation, groups);
  check(running_mean.is_none() == running_var.is_none(),
        "expected both running_mean and running_var, or neither of them");
  check(!running_var.is_none() || (norm_weight.is_none() && norm_bias.is_none()),
        "expected running statistics with norm_weight and norm_bias");
  if (!running_var.is_none()) {
    TensorMeta normalised;
    normalised.sizes = result;
    batch_norm(Arg(&normalised), running_mean, running_var, norm_weight, norm_bias, /*training=*/false);
  }
  check(added.is_none() || sizes_of(added) == result, "expected added to have the result's size ", result);
  constexpr std::string_view kActivations[] = {"none", "relu",       "relu6",     "hardswish", "hardsigmoid",
                                               "silu", "gelu",       "gelu_tanh", "mish",      "sigmoid",
                                               "tanh", "leaky_relu", "elu"};
  check(ErrorKind::kValue,
        std::find(std::begin(kActivations), std::end(kActivations), activation) != std::end(kActivations),
        "expected an activation none, relu, relu6, hardswish, hardsigmoid, silu, gelu, gelu_tanh, mish, sigmoid, tanh, "
        "leaky_relu or elu, got ",
        activation);
  return result;
}

Sizes conv(const Arg& input, const Arg& weight, const Arg& bias, SizesView stride, SizesView padding,
           SizesView dilation, SymInt groups, int64_t space) {
  Sizes x = batched(input, weight, space, "conv");
  return as_given(input, convolved(x, sizes_of(weight), bias, stride, padding, dilation, groups));
}

Sizes conv_tbc(const Arg& input, const Arg& weight, const Arg& bias, SymInt pad) {
  const Sizes &x = sizes_of(input), &w = sizes_of(weight), &b = sizes_of(bias);
  check(x.size() == 3, "Input must have 3 dims: time, batch, in_channel, got size ", x);
  check(w.size() == 3, "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels, got size ", w);
  check(b.size() == 1, "Bias must be 1-D, got size ", b);
  check(x[2] == w[1], "Input dim 2 (input channels) is not == dim 1 in the weight tensor, got sizes ", x, " and ", w);
  check(b[0] == w[2], "Bias size must equal dim 2 in the weight tensor (output channels), got sizes ", b, " and ", w);
  const SymInt one = 1;
  const Sizes by_channel = convolved({x[1], x[2], x[0]}, {w[2], w[1], w[0]}, bias, {&one, 1}, {&pad, 1}, {&one, 1}, 1);
  return {by_channel[2], by_channel[0], by_channel[1]};
}

Sizes conv_transpose(const Arg& input, const Arg& weight, const Arg& bias, SizesView stride, SizesView padding,
                     SizesView output_padding, SymInt groups, SizesView dilation, int64_t space) {
  Sizes x = batched(input, weight, space, "conv_transpose");
  const Sizes& w = sizes_of(weight);
  const size_t n = static_cast<size_t>(space);
  check_windows(n, stride, padding, dilation, groups);
  check_list(output_padding, n, 0, "output_padding");
  check(x[1] == w[0], "Given transposed=1, weight of size ", w, ", expected input", x, " to have ", w[0],
        " channels, but got ", x[1], " channels instead");
  check(w[0] % groups == 0 && w[0] >= groups, "Given groups=", groups,
        ", expected weight to be divisible by it at dimension 0, but got weight of size ", w, " instead");
  const SymInt channels = checked_mul(w[1], groups);
  check(bias.is_none() || (sizes_of(bias).size() == 1 && sizes_of(bias)[0] == channels),
        "Given transposed=1, weight of size ", w, ", expected bias to be 1-dimensional with ", channels,
        " elements, but got bias of size ", bias.is_none() ? SizesView() : SizesView(sizes_of(bias)), " instead");
  Sizes result{x[0], channels};
  for (size_t i = 0; i < n; ++i) {
    check(output_padding[i] < stride[i] || output_padding[i] < dilation[i],
          "output padding must be smaller than either stride or dilation, but got output_padding: ", output_padding,
          " stride: ", stride, " dilation: ", dilation);
    check(is_within(w[2 + i], kLimit - 1) && is_within(x[2 + i], kLimit - 1), "expected sizes below 2^28, got input", x,
          " and weight", w);
    const Window window{w[2 + i], stride[i], padding[i], dilation[i]};
    SymInt size = (x[2 + i] - 1) * stride[i] - 2 * padding[i] + window.extent() + output_padding[i];
    check(size > 0, "Given input size per channel: ", SizesView(x).subspan(2),
          ". Calculated output size per channel is too small: ", size);
    result.push_back(size);
  }
  return as_given(input, result);
}

namespace {

void check_planes(SizesView x, size_t space) {
  bool fits = x.size() == space + 1 || x.size() == space + 2;
  for (size_t i = 0; fits && i <= space; ++i) fits = x[x.size() - 1 - i] > 0;
  check(fits, "Expected ", space + 1, "D or ", space + 2,
        "D (batch mode) tensor with optional 0 dim batch size for input, but got: ", x);
}

// Pools over the last kernel.size() dimensions.
Sizes pooled(SizesView x, SizesView kernel, Dims stride, SizesView padding, SizesView dilation, bool ceil_mode) {
  const size_t space = kernel.size();
  check_list(kernel, space, 1, "kernel_size");
  SizesView step = stride && !stride->empty() ? *stride : kernel;
  check_list(step, space, 1, "stride");
  check_list(padding, space, 0, "padding");
  check_list(dilation, space, 1, "dilation");
  Sizes result(x.begin(), x.end());
  for (size_t i = 0; i < space; ++i) {
    Window window{kernel[i], step[i], padding[i], dilation[i]};
    check(padding[i] <= window.extent() / 2,
          "pad should be at most half of effective kernel size, but got pad=", padding[i], ", kernel_size=", kernel[i],
          " and dilation=", dilation[i]);
    check(padding[i] <= kernel[i] / 2,
          "pad should be smaller than or equal to half of kernel size, but got pad=", padding[i],
          " and kernel_size=", kernel[i]);
    SymInt& size = result[result.size() - space + i];
    size = window.output_size(size, ceil_mode);
    check(size > 0, "Given input size: ", x, ". Calculated output size is too small: ", result);
  }
  return result;
}

Sizes adaptive_pooled(const Sizes& x, SizesView output_size) {
  const size_t space = output_size.size();
  check(x.size() == space + 1 || x.size() == space + 2, "Expected ", space + 1, "D or ", space + 2,
        "D tensor, but got ", x);
  Sizes result = x;
  for (size_t i = 0; i < space; ++i) {
    const size_t d = x.size() - space + i;
    check(x[d] > 0, "Expected input to have non-zero size for non-batch dimensions, but input has sizes ", x);
    result[d] = output_size[i];
  }
  return result;
}

// The number of window positions in two dimensions.
Sizes window_counts(SizesView size, SizesView kernel, SizesView dilation, SizesView padding, SizesView stride) {
  check_windows(2, stride, padding, dilation, 1);
  Sizes counts;
  for (size_t i = 0; i < 2; ++i)
    counts.push_back(Window{kernel[i], stride[i], padding[i], dilation[i]}.output_size(size[i]));
  check(counts[0] > 0 && counts[1] > 0, "Given input with spatial size ", size, ", kernel_size=", kernel,
        ", dilation=", dilation, ", padding=", padding, ", calculated shape of the array of sliding blocks as ", counts,
        ", but its components must be at least one.");
  return counts;
}

}  // namespace

Sizes max_pool2d(const Arg& input, SizesView kernel, Dims stride, SizesView padding, SizesView dilation,
                 bool ceil_mode) {
  check_list(kernel, 2, 1, "kernel_size");
  check_planes(sizes_of(input), 2);
  return pooled(sizes_of(input), kernel, stride, padding, dilation, ceil_mode);
}

Sizes max_pool2d_backward(const Arg& grad, const Arg& indices, SizesView size) {
  const Sizes& g = sizes_of(grad);
  check(g == sizes_of(indices), "Expected a gradient of size ", sizes_of(indices), ", got ", g);
  check(size.size() == g.size() && g.size() >= 3 && std::equal(g.begin(), g.end() - 2, size.begin()),
        "Expected input and gradient with equal batch and channel sizes, got ", size, " and ", g);
  return sizes(size);
}

Sizes avg_pool2d(const Arg& input, SizesView kernel, Dims stride, SizesView padding, bool ceil_mode,
                 std::optional<SymInt> divisor_override) {
  check(!divisor_override || *divisor_override != 0, "divisor must be not zero");
  return max_pool2d(input, kernel, stride, padding, Sizes{1, 1}, ceil_mode);
}

Sizes avg_pool2d_backward(const Arg& grad, SizesView size, SizesView kernel, Dims stride, SizesView padding,
                          bool ceil_mode) {
  check_list(kernel, 2, 1, "kernel_size");
  check_planes(size, 2);
  Sizes expected = pooled(sizes(size), kernel, stride, padding, Sizes{1, 1}, ceil_mode);
  check(sizes_of(grad) == expected, "Expected a gradient of size ", expected, ", got ", sizes_of(grad));
  return sizes(size);
}

Sizes adaptive_pool2d(const Arg& input, SizesView output_size) {
  check_list(output_size, 2, 0, "output_size");
  return adaptive_pooled(sizes_of(input), output_size);
}

Sizes adaptive_pool3d(const Arg& input, SizesView output_size) {
  check_list(output_size, 3, 0, "output_size");
  return adaptive_pooled(sizes_of(input), output_size);
}

Sizes pool3d(const Arg& input, SizesView kernel, Dims stride, SizesView padding, bool ceil_mode) {
  return pool3d(input, kernel, stride, padding, Sizes{1, 1, 1}, ceil_mode);
}

Sizes pool3d(const Arg& input, SizesView kernel, Dims stride, SizesView padding, SizesView dilation, bool ceil_mode) {
  check_list(kernel, 3, 1, "kernel_size");
  check_planes(sizes_of(input), 3);
  return pooled(sizes_of(input), kernel, stride, padding, dilation, ceil_mode);
}

Sizes im2col(const Arg& input, SizesView kernel, SizesView dilation, SizesView padding, SizesView stride) {
  Sizes x = sizes_of(input);
  check(x.size() == 3 || x.size() == 4, "Expected 3D or 4D (batch mode) tensor for input, but got: ", x);
  check_list(kernel, 2, 1, "kernel_size");
  const Sizes counts = window_counts(SizesView(x).subspan(x.size() - 2), kernel, dilation, padding, stride);
  Sizes result(x.begin(), x.end() - 2);
  result.back() = checked_mul(result.back(), kernel[0] * kernel[1]);
  result.push_back(checked_mul(counts[0], counts[1]));
  return result;
}

Sizes col2im(const Arg& input, SizesView size, SizesView kernel, SizesView dilation, SizesView padding,
             SizesView stride) {
  const Sizes& x = sizes_of(input);
  check(x.size() == 2 || x.size() == 3, "Expected 2D or 3D (batch mode) tensor for input, but got: ", x);
  check_list(size, 2, 1, "output_size");
  check_list(kernel, 2, 1, "kernel_size");
  const Sizes counts = window_counts(size, kernel, dilation, padding, stride);
  const SymInt columns = x[x.size() - 2], kernel_numel = kernel[0] * kernel[1];
  check(columns % kernel_numel == 0,
        "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got ",
        "input.size(1)=", columns, " and kernel_size=", kernel, ".");
  check(x.back() == checked_mul(counts[0], counts[1]), "Given output_size=", size, ", kernel_size=", kernel,
        ", dilation=", dilation, ", padding=", padding, ", stride=", stride,
        ", expected size of input's dimension 2 to match the calculated number of sliding blocks ", counts[0], " * ",
        counts[1], " = ", counts[0] * counts[1], ", but got input.size(2)=", x.back(), ".");
  Sizes result(x.begin(), x.end() - 1);
  result.back() = columns / kernel_numel;
  result.push_back(size[0]);
  result.push_back(size[1]);
  return result;
}

Sizes interpolate(const Arg& input, SizesView size, std::string_view mode, bool align_corners,
                  absl::Span<const double> scale_factors) {
  const Sizes& x = sizes_of(input);
  check(ErrorKind::kNotImplemented, x.size() >= 3 && x.size() <= 5,
        "Input Error: Only 3D, 4D and 5D input Tensors supported (got ", x.size(),
        "D) for the modes: nearest | linear | "
        "bilinear | bicubic | trilinear | area | nearest-exact (got ",
        mode, ")");
  const size_t space = x.size() - 2;
  constexpr std::string_view kLinear[] = {"linear", "bilinear", "trilinear"};
  const bool any = mode == "nearest" || mode == "nearest-exact" || mode == "area";
  if (!any) {
    const auto* linear = std::find(std::begin(kLinear), std::end(kLinear), mode);
    const size_t needed = mode == "bicubic"             ? 2
                          : linear == std::end(kLinear) ? 0
                                                        : static_cast<size_t>(linear - kLinear) + 1;
    check(ErrorKind::kNotImplemented, needed != 0, "unknown mode ", mode);
    check(ErrorKind::kNotImplemented, needed == space, "Got ", x.size(), "D input, but ", mode, " mode needs ",
          needed + 2, "D input");
  }
  check(ErrorKind::kValue, !align_corners || !any,
        "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear");
  check(ErrorKind::kValue, size.size() == space && (scale_factors.empty() || scale_factors.size() == space),
        "Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of ",
        SizesView(x).subspan(2), " and output size of ", size);
  Sizes result{x[0], x[1]};
  for (size_t i = 0; i < space; ++i) {
    check(size[i] > 0 && x[2 + i] > 0, "Input and output sizes should be greater than 0, but got input (", x,
          ") and output ", size);
    check(is_within(size[i], 1 << 24), "expected output sizes of at most 2^24, got ", size);
    result.push_back(size[i]);
  }
  return result;
}

Sizes adaptive_pool2d_backward(const Arg& grad, SizesView size) {
  const Sizes& g = sizes_of(grad);
  check(size.size() == g.size() && g.size() >= 3 && std::equal(g.begin(), g.end() - 2, size.begin()),
        "Expected input and gradient with equal batch and channel sizes, got ", size, " and ", g);
  check(size[size.size() - 1] > 0 && size[size.size() - 2] > 0,
        "Expected an input with non-zero spatial sizes, got an input of sizes ", size);
  return sizes(size);
}

}  // namespace tt::shape_rules
