#include "engine/composites/resampling.h"

#include <algorithm>
#include <cmath>

#include "engine/dispatch/ops.h"
#include "engine/schema/rules/shape_rules.h"

namespace tt::composites {
namespace {

// The mapping from result to input positions in one resampled dimension.
struct Axis {
  int64_t from, to;
  bool align_corners;
  double step;  // input positions per result position

  Axis(int64_t in, int64_t out, bool align, double scale_factor)
      : from(in), to(out), align_corners(align), step(static_cast<double>(in) / static_cast<double>(out)) {
    if (align)
      step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    else if (scale_factor > 0)
      step = 1 / scale_factor;
  }
  double center(int64_t i) const {
    return align_corners ? step * static_cast<double>(i) : step * (static_cast<double>(i) + 0.5) - 0.5;
  }
  // The index of the element at or before a position, clamped to the input.
  int64_t before(double position) const {
    if (!(position > 0)) return 0;  // NaN as well
    return static_cast<int64_t>(std::min(std::floor(position), static_cast<double>(from - 1)));
  }
};

// f(0), f(1), ..., f(n - 1), stored in the session's memory since there may be millions.
template <typename T, typename F>
Tensor computed(int64_t n, F f, DType dtype, Device device) {
  const Tensor values = empty(Sizes{n}, dtype, Device{});
  for (int64_t i = 0; i < n; ++i) values.data_as<T>()[i] = f(i);
  if (device.type == DeviceType::kCPU) return values;
  const std::string_view bytes(values.data_as<char>(), static_cast<size_t>(n) * sizeof(T));
  return ops::literal(bytes, Sizes{n}, dtype, device);
}

// The elements of `input` along `dim` at f(0), f(1), ..., f(n - 1).
template <typename F>
Tensor select_positions(const Tensor& input, int64_t dim, int64_t n, F f) {
  return ops::index_select(input, dim, computed<int64_t>(n, f, DType::kInt64, input.device()));
}

// An element that contributes to a result, and its factor.
struct Tap {
  int64_t index;
  double weight;
};

// Returns, for each position i below n along `dim`, the weighted sum of the elements tap(k, i) for k below `taps`.
template <typename F>
Tensor weighted_sum(const Tensor& input, int64_t dim, int64_t n, int64_t taps, F tap) {
  const SizesView sizes = input.sizes();
  const auto at = static_cast<size_t>(dim);
  const Tensor index = computed<int64_t>(
      taps * n, [&](int64_t i) { return tap(i / n, i % n).index; }, DType::kInt64, input.device());
  const Tensor weight = computed<double>(
      taps * n, [&](int64_t i) { return tap(i / n, i % n).weight; }, DType::kFloat64, input.device());
  const Tensor entries =
      ops::reshape(input, Sizes{1, product(sizes.first(at)), sizes[at], product(sizes.subspan(at + 1))});
  const Sizes one_batch{1, taps, n};
  Sizes result(sizes.begin(), sizes.end());
  result[at] = n;
  return ops::reshape(ops::weighted_gather(entries, ops::reshape(index, one_batch),
                                           ops::reshape(ops::to_dtype(weight, input.dtype()), one_batch)),
                      result);
}

// Computes positions in float, so that they are rounded as in PyTorch.
Tensor nearest(const Tensor& input, int64_t dim, const Axis& axis, float shift) {
  return select_positions(input, dim, axis.to, [&](int64_t i) {
    return axis.before((static_cast<float>(i) + shift) * static_cast<float>(axis.step));
  });
}

Tensor linear(const Tensor& input, int64_t dim, const Axis& axis) {
  return weighted_sum(input, dim, axis.to, 2, [&](int64_t k, int64_t i) {
    const double position = std::clamp(axis.center(i), 0.0, static_cast<double>(axis.from - 1));
    const int64_t low = axis.before(position);
    const double part = position - static_cast<double>(low);
    return k == 0 ? Tap{low, 1 - part} : Tap{std::min(low + 1, axis.from - 1), part};
  });
}

// The cubic convolution kernel, with PyTorch's a = -0.75.
double cubic_weight(double distance) {
  constexpr double a = -0.75;
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

Tensor cubic(const Tensor& input, int64_t dim, const Axis& axis) {
  return weighted_sum(input, dim, axis.to, 4, [&](int64_t k, int64_t i) {
    const double center = axis.center(i), at = std::floor(center) + static_cast<double>(k - 1);
    return Tap{axis.before(at), cubic_weight(center - at)};
  });
}

Tensor area(const Tensor& input, SizesView size) {
  if (size.size() == 3) return separable_adaptive_avg_pool3d(input, size);
  if (size.size() == 2) return ops::adaptive_avg_pool2d(input, size);
  return ops::squeeze_dim(ops::adaptive_avg_pool2d(ops::unsqueeze(input, -2), Sizes{1, size[0]}), Sizes{-2});
}

// Views (..., D, H, W) as (N, D, H, W) to pool the last two dimensions, or as (N, 1, D, H * W) to pool the first.
struct Volumes {
  Sizes lead, volume;

  explicit Volumes(const Tensor& t)
      : lead(t.sizes().begin(), t.sizes().end() - 3), volume(t.sizes().end() - 3, t.sizes().end()) {}
  int64_t count() const { return product(lead); }
  Tensor planes(const Tensor& t) const { return ops::reshape(t, Sizes{count(), volume[0], volume[1], volume[2]}); }
  Tensor lines(const Tensor& planes) const {
    return ops::reshape(planes, Sizes{count(), 1, volume[0], planes.size(-2) * planes.size(-1)});
  }
  Tensor result(const Tensor& lines, const Tensor& planes) const {
    Sizes sizes = lead;
    for (int64_t size : {lines.size(-2), planes.size(-2), planes.size(-1)}) sizes.push_back(size);
    return ops::reshape(lines, sizes);
  }
};

SizesView last_two(SizesView list) { return list.subspan(1); }

// As in PyTorch, an empty stride means the kernel's size.
SizesView stride_or(SizesView stride, SizesView kernel) { return stride.empty() ? kernel : stride; }

}  // namespace

Tensor resample(const Tensor& input, SizesView size, std::string_view mode, bool align_corners,
                absl::Span<const double> scales) {
  if (mode == "area") return area(input, size);
  Tensor result = input;
  for (size_t i = 0; i < size.size(); ++i) {
    const int64_t dim = static_cast<int64_t>(i) + 2;
    const Axis axis(input.size(dim), size[i], align_corners, scales.empty() ? 0 : scales[i]);
    if (mode == "nearest")
      result = nearest(result, dim, axis, 0);
    else if (mode == "nearest-exact")
      result = nearest(result, dim, axis, 0.5f);
    else if (mode == "bicubic")
      result = cubic(result, dim, axis);
    else
      result = linear(result, dim, axis);
  }
  return result;
}

Tensor unfold_patches(const Tensor& input, SizesView kernel, SizesView dilation, SizesView padding, SizesView stride) {
  const bool batched = input.dim() == 4;
  Tensor t = batched ? input : ops::unsqueeze(input, 0);
  t = ops::pad(t, Sizes{padding[1], padding[1], padding[0], padding[0]}, int64_t{0});
  for (int64_t i = 0; i < 2; ++i) {
    const size_t d = static_cast<size_t>(i);
    t = ops::unfold(t, 2 + i, dilation[d] * (kernel[d] - 1) + 1, stride[d]);
    t = ops::slice(t, -1, std::nullopt, std::nullopt, dilation[d]);
  }
  const int64_t n = t.size(0), channels = t.size(1), windows = t.size(2) * t.size(3);
  t = ops::reshape(ops::permute(t, Sizes{0, 1, 4, 5, 2, 3}), Sizes{n, channels * kernel[0] * kernel[1], windows});
  return batched ? t : ops::squeeze_dim(t, Sizes{0});
}

// A transposed convolution with one weight per position in the window.
Tensor fold_patches(const Tensor& input, SizesView size, SizesView kernel, SizesView dilation, SizesView padding,
                    SizesView stride) {
  const bool batched = input.dim() == 3;
  const Tensor columns = batched ? input : ops::unsqueeze(input, 0);
  const int64_t kernel_numel = kernel[0] * kernel[1], channels = columns.size(1) / kernel_numel;
  auto windows = [&](size_t d) {
    return (size[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
  };
  const Tensor images = ops::reshape(columns, Sizes{columns.size(0), columns.size(1), windows(0), windows(1)});
  const Tensor one = ops::reshape(ops::eye(kernel_numel, std::nullopt, input.dtype(), input.device()),
                                  Sizes{kernel_numel, 1, kernel[0], kernel[1]});
  const Tensor weight = ops::repeat(one, Sizes{channels, 1, 1, 1});
  const Tensor result = ops::convolution_input(images, weight, Sizes{columns.size(0), channels, size[0], size[1]},
                                               stride, padding, dilation, channels);
  return batched ? result : ops::squeeze_dim(result, Sizes{0});
}

Tensor largest_of_windows(const Tensor& input, SizesView kernel, std::optional<SizesView> stride, SizesView padding,
                          SizesView dilation, bool ceil_mode) {
  // With rows and columns, finding the maxima of columns first takes fewer steps. In channels last, the other kernel reads
  // several channels at a time.
  const bool is_line = std::min(kernel[0], kernel.back()) == 1;
  if (is_line && input.is_contiguous() && !input.requires_grad() && input.device().type == DeviceType::kCPU) {
    return ops::max_pool_values(input, kernel, stride, padding, dilation, ceil_mode);
  }
  return ops::max_pool2d_with_indices(input, kernel, stride, padding, dilation, ceil_mode)[0];
}

Tensor separable_max_pool3d(const Tensor& input, SizesView kernel, SizesView given_stride, SizesView padding,
                            SizesView dilation, bool ceil_mode) {
  const SizesView stride = stride_or(given_stride, kernel);
  const Volumes volumes(input);
  const Tensor planes = ops::max_pool2d(volumes.planes(input), last_two(kernel), last_two(stride), last_two(padding),
                                        last_two(dilation), ceil_mode);
  const Tensor lines = ops::max_pool2d(volumes.lines(planes), Sizes{kernel[0], 1}, Sizes{stride[0], 1},
                                       Sizes{padding[0], 0}, Sizes{dilation[0], 1}, ceil_mode);
  return volumes.result(lines, planes);
}

namespace {

// Sums and counts are integers, divided once: a mean of means would be truncated twice.
Tensor average_integers(const Tensor& input, SizesView kernel, SizesView stride, SizesView padding, bool ceil_mode,
                        bool count_include_pad, std::optional<int64_t> divisor_override) {
  const auto sums = [&](const Tensor& t) {
    return separable_avg_pool3d(t, kernel, stride, padding, ceil_mode, count_include_pad, int64_t{1});
  };
  check(!divisor_override || *divisor_override != 0, "divisor must be not zero");
  const Tensor total = sums(ops::to_dtype(input, DType::kFloat64));
  Tensor count;
  if (!divisor_override) {
    const Tensor ones = ops::ones_like(ops::to_dtype(input, DType::kFloat64));
    const Tensor share =
        separable_avg_pool3d(ones, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override);
    // Elements per window: the number inside the input, divided by its share of the window.
    count = ops::round(ops::true_divide(sums(ones), share));
  }
  const Tensor quotient =
      divisor_override ? ops::true_divide(total, *divisor_override) : ops::true_divide(total, count);
  return ops::to_dtype(quotient, input.dtype());
}

}  // namespace

Tensor separable_avg_pool3d(const Tensor& input, SizesView kernel, SizesView given_stride, SizesView padding,
                            bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override) {
  const SizesView stride = stride_or(given_stride, kernel);
  if (is_integral(input.dtype())) {
    return average_integers(input, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override);
  }
  const Volumes volumes(input);
  const auto one = divisor_override ? std::optional<int64_t>(1) : std::nullopt;
  const Tensor planes = ops::avg_pool2d(volumes.planes(input), last_two(kernel), last_two(stride), last_two(padding),
                                        ceil_mode, count_include_pad, one);
  const Tensor lines = ops::avg_pool2d(volumes.lines(planes), Sizes{kernel[0], 1}, Sizes{stride[0], 1},
                                       Sizes{padding[0], 0}, ceil_mode, count_include_pad, divisor_override);
  return volumes.result(lines, planes);
}

Tensor separable_adaptive_avg_pool3d(const Tensor& input, SizesView size) {
  const Volumes volumes(input);
  const Tensor planes = ops::adaptive_avg_pool2d(volumes.planes(input), last_two(size));
  const Tensor lines =
      ops::adaptive_avg_pool2d(volumes.lines(planes), Sizes{size[0], planes.size(-2) * planes.size(-1)});
  return volumes.result(lines, planes);
}

Tensor nth_difference(const Tensor& input, int64_t n, int64_t dim) {
  Tensor result = input;
  for (n = std::min(n, input.size(dim)); n > 0; --n) {  // the result is empty after as many steps as there are elements
    const int64_t rest = std::max<int64_t>(result.size(dim) - 1, 0), start = std::min<int64_t>(result.size(dim), 1);
    const Tensor after = ops::narrow(result, dim, start, rest), before = ops::narrow(result, dim, 0, rest);
    result = result.dtype() == DType::kBool ? ops::logical_xor(after, before) : ops::sub(after, before);
  }
  return result.same(input) ? ops::clone(input) : result;
}

}  // namespace tt::composites
