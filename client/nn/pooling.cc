#include "client/nn/pooling.h"

#include <cmath>

#include "client/api/creation.h"
#include "client/api/matrices.h"
#include "client/api/operators.h"
#include "client/api/session.h"

namespace teletensor::nn::functional {
namespace {

using internal::product;
using Sizes = std::vector<int64_t>;

// A window over one dimension as one over two, the first of which has size 1.
Sizes line(IntArrayRef one, int64_t first = 1) { return {first, one[0]}; }

void require_line(const char* function, const Tensor& input) {
  if (input.dim() == 2 || input.dim() == 3) return;
  throw RuntimeError(std::string(function) +
                     ": Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:" +
                     tt::to_string(input.sizes().span()));
}

std::pair<Sizes, Sizes> split_sizes(const Tensor& input, size_t last, const char* function) {
  const Sizes sizes = input.sizes().vec();
  if (sizes.size() < last + 1) {
    throw RuntimeError(std::string(function) + ": expected at least " + std::to_string(last + 1) + " dimensions, got " +
                       std::to_string(sizes.size()));
  }
  return {Sizes(sizes.begin(), sizes.end() - static_cast<ptrdiff_t>(last)),
          Sizes(sizes.end() - static_cast<ptrdiff_t>(last), sizes.end())};
}

template <size_t D>
Tensor unpool(const Tensor& input, const Tensor& indices, const MaxUnpoolOptions<D>& o,
              const std::optional<Sizes>& output_size) {
  const std::string function = "max_unpool" + std::to_string(D) + "d";
  const auto [leading, last] = split_sizes(input, D, function.c_str());
  if (!(input.sizes() == indices.sizes())) {
    throw RuntimeError("Expected shape of indices to be same as that of the input tensor (" +
                       tt::to_string(input.sizes().span()) +
                       ") but got indices tensor with shape: " + tt::to_string(indices.sizes().span()));
  }
  Sizes size;
  for (size_t d = 0; d < D; ++d) {
    if (o.stride()[d] <= 0) throw RuntimeError("strides should be greater than zero");
    size.push_back((last[d] - 1) * o.stride()[d] + o.kernel_size()[d] - 2 * o.padding()[d]);
  }
  if (output_size) {
    if (output_size->size() != D && output_size->size() != D + 2) {
      throw ValueError("output_size should be a sequence containing " + std::to_string(D) + " or " +
                       std::to_string(D + 2) + " elements, but it has a length of '" +
                       std::to_string(output_size->size()) + "'");
    }
    const Sizes given(output_size->end() - static_cast<ptrdiff_t>(D), output_size->end());
    for (size_t d = 0; d < D; ++d) {
      if (given[d] <= size[d] - o.stride()[d] || given[d] >= size[d] + o.stride()[d]) {
        throw ValueError("invalid output_size " + tt::to_string(given) + " (expected " + tt::to_string(size) +
                         ", plus or minus less than a stride)");
      }
    }
    size = given;
  }
  Sizes flat = leading;
  flat.push_back(product(size));
  Sizes result = leading;
  result.insert(result.end(), size.begin(), size.end());
  const int64_t from = -static_cast<int64_t>(D);
  return input.new_zeros(flat).scatter(-1, indices.flatten(from), input.flatten(from)).reshape(result);
}

// The powered mean of windows, times the window's size, to the power 1 / norm_type.
Tensor root_of_mean(const Tensor& mean, double norm_type, int64_t count) {
  return (mean.sign() * mean.abs().relu() * count).pow(1 / norm_type);
}

void check_norm_type(double norm_type) {
  if (norm_type == 0 || !std::isfinite(norm_type))
    throw ValueError("norm_type must be a finite non-zero value, but got " + std::to_string(norm_type));
}

// The place in a dimension of `size` elements of each element of the padded dimension.
Tensor pad_index(const std::string& mode, int64_t size, int64_t before, int64_t after, const Tensor& like) {
  const Tensor positions = arange(-before, size + after, 1, TensorOptions(kLong).device(like.device()));
  if (mode == "replicate") return positions.clamp(0, size - 1);
  if (mode == "circular") return positions.remainder(size);
  if (std::max(before, after) >= size) {
    throw RuntimeError("Padding size should be less than the corresponding input dimension, but got: padding (" +
                       std::to_string(before) + ", " + std::to_string(after) + ") at a dimension of size " +
                       std::to_string(size));
  }
  return (size - 1) - (positions.abs() - (size - 1)).abs();
}

}  // namespace

Tensor max_pool1d(const Tensor& input, const MaxPool1dFuncOptions& o) {
  require_line("max_pool1d", input);
  return ops::max_pool2d(input.unsqueeze(-2), line(o.kernel_size()), line(o.stride()), line(o.padding(), 0),
                         line(o.dilation()), o.ceil_mode())
      .squeeze(-2);
}
std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& input, const MaxPool1dFuncOptions& o) {
  require_line("max_pool1d", input);
  const auto [values, indices] =
      ops::max_pool2d_with_indices(input.unsqueeze(-2), line(o.kernel_size()), line(o.stride()), line(o.padding(), 0),
                                   line(o.dilation()), o.ceil_mode());
  return {values.squeeze(-2), indices.squeeze(-2)};
}
std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& input, const MaxPool2dFuncOptions& o) {
  return ops::max_pool2d_with_indices(input, o.kernel_size(), IntArrayRef(o.stride()), o.padding(), o.dilation(),
                                      o.ceil_mode());
}
Tensor avg_pool1d(const Tensor& input, const AvgPool1dFuncOptions& o) {
  require_line("avg_pool1d", input);
  return teletensor::avg_pool2d(input.unsqueeze(-2), line(o.kernel_size()), line(o.stride()), line(o.padding(), 0),
                                o.ceil_mode(), o.count_include_pad())
      .squeeze(-2);
}
Tensor adaptive_avg_pool1d(const Tensor& input, const AdaptiveAvgPool1dFuncOptions& o) {
  return ops::adaptive_avg_pool2d(input.unsqueeze(-2), line(o.output_size())).squeeze(-2);
}
Tensor adaptive_avg_pool3d(const Tensor& input, const AdaptiveAvgPool3dFuncOptions& o) {
  return ops::adaptive_avg_pool3d(input, o.output_size());
}
Tensor adaptive_max_pool1d(const Tensor& input, const AdaptiveMaxPool1dFuncOptions& o) {
  return teletensor::adaptive_max_pool2d(input.unsqueeze(-2), line(o.output_size())).squeeze(-2);
}
std::tuple<Tensor, Tensor> adaptive_max_pool2d_with_indices(const Tensor& input,
                                                            const AdaptiveMaxPool2dFuncOptions& o) {
  return teletensor::adaptive_max_pool2d_with_indices(input, o.output_size());
}
Tensor adaptive_max_pool3d(const Tensor& input, const AdaptiveMaxPool3dFuncOptions& o) {
  auto [sizes, last] = split_sizes(input, 3, "adaptive_max_pool3d");
  const auto& to = o.output_size();  // planes first, then along depth
  const Tensor planes = teletensor::adaptive_max_pool2d(
      input.reshape({product(sizes) * last[0] == 0 ? 0 : -1, last[0], last[1], last[2]}), {to[1], to[2]});
  const Tensor lines = teletensor::adaptive_max_pool2d(planes.reshape({planes.size(0), 1, last[0], to[1] * to[2]}),
                                                       {to[0], to[1] * to[2]});
  sizes.insert(sizes.end(), {to[0], to[1], to[2]});
  return lines.reshape(sizes);
}

Tensor max_unpool1d(const Tensor& input, const Tensor& indices, const MaxUnpool1dOptions& o,
                    const std::optional<Sizes>& output_size) {
  return unpool<1>(input, indices, o, output_size);
}
Tensor max_unpool2d(const Tensor& input, const Tensor& indices, const MaxUnpool2dOptions& o,
                    const std::optional<Sizes>& output_size) {
  return unpool<2>(input, indices, o, output_size);
}
Tensor max_unpool3d(const Tensor& input, const Tensor& indices, const MaxUnpool3dOptions& o,
                    const std::optional<Sizes>& output_size) {
  return unpool<3>(input, indices, o, output_size);
}

Tensor lp_pool1d(const Tensor& input, const LPPool1dFuncOptions& o) {
  check_norm_type(o.norm_type());
  const Tensor mean = avg_pool1d(input.pow(o.norm_type()),
                                 AvgPool1dOptions(o.kernel_size()).stride(o.stride()).ceil_mode(o.ceil_mode()));
  return root_of_mean(mean, o.norm_type(), o.kernel_size()[0]);
}
Tensor lp_pool2d(const Tensor& input, const LPPool2dFuncOptions& o) {
  check_norm_type(o.norm_type());
  const Tensor mean =
      teletensor::avg_pool2d(input.pow(o.norm_type()), o.kernel_size(), IntArrayRef(o.stride()), 0, o.ceil_mode());
  return root_of_mean(mean, o.norm_type(), o.kernel_size()[0] * o.kernel_size()[1]);
}

Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& o) {
  if (o.align_corners() && (o.mode() == "nearest" || o.mode() == "area" || o.mode() == "nearest-exact")) {
    throw ValueError(
        "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear");
  }
  if (o.recompute_scale_factor().value_or(false) && o.size())
    throw ValueError("recompute_scale_factor is not meaningful with an explicit size.");
  if (o.size().has_value() == o.scale_factor().has_value())
    throw ValueError("only one of size or scale_factor should be defined");
  if (input.dim() < 3)
    throw NotImplementedError("Input Error: Only 3D, 4D and 5D input Tensors supported (got " +
                              std::to_string(input.dim()) + "D)");
  if (input.dtype() == kByte && (o.mode() == "bilinear" || o.mode() == "bicubic"))
    throw NotImplementedError("[interpolate] mode '" + o.mode() + "' of uint8 images; convert them to float");
  const auto spatial = static_cast<size_t>(input.dim() - 2);
  const bool corners = o.align_corners().value_or(false);
  if (o.size()) {
    Sizes sizes = *o.size();
    if (sizes.size() == 1) sizes.assign(spatial, sizes[0]);
    return ops::interpolate(input, sizes, o.mode(), corners);
  }
  std::vector<double> factors = *o.scale_factor();
  if (factors.size() == 1) factors.assign(spatial, factors[0]);
  if (factors.size() != spatial) {
    throw ValueError("Input and scale_factor must have the same number of spatial dimensions, but got input with " +
                     std::to_string(spatial) + " spatial dimensions and scale_factor of " +
                     std::to_string(factors.size()) + " numbers");
  }
  Sizes sizes;
  for (size_t i = 0; i < spatial; ++i) {
    const double size = std::floor(static_cast<double>(input.size(static_cast<int64_t>(i) + 2)) * factors[i]);
    if (!(size >= 0 && size < 1e18)) throw ValueError("scale_factor must be a positive number");
    sizes.push_back(static_cast<int64_t>(size));
  }
  if (o.recompute_scale_factor().value_or(false)) return ops::interpolate(input, sizes, o.mode(), corners);
  return ops::interpolate(input, sizes, o.mode(), corners, factors);
}

Tensor unfold(const Tensor& input, const UnfoldFuncOptions& o) {
  return ops::im2col(input, o.kernel_size(), o.dilation(), o.padding(), o.stride());
}
Tensor fold(const Tensor& input, const FoldFuncOptions& o) {
  return ops::col2im(input, o.output_size(), o.kernel_size(), o.dilation(), o.padding(), o.stride());
}

Tensor pad(const Tensor& input, const PadFuncOptions& o) {
  Sizes pad = o.pad();
  if (pad.size() % 2 != 0 || static_cast<int64_t>(pad.size() / 2) > input.dim()) {
    throw RuntimeError("Padding length must be even and at most twice the number of dimensions, got " +
                       tt::to_string(pad));
  }
  if (o.mode() == "constant") return ops::pad(input, pad, o.value());
  if (o.mode() != "reflect" && o.mode() != "replicate" && o.mode() != "circular")
    throw NotImplementedError("Unrecognised padding mode " + o.mode());
  if (o.value() != 0) throw RuntimeError("Padding mode \"" + o.mode() + "\" doesn't take in value argument");
  const SessionGuard session(input.session());
  Tensor result = input;
  if (o.mode() == "circular") {  // cropped elements must not reappear
    Sizes cropped = pad;
    for (int64_t& n : cropped) n = std::min<int64_t>(n, 0);
    result = ops::pad(result, cropped);
    for (size_t i = 0; i < pad.size(); ++i) {
      pad[i] = std::max<int64_t>(pad[i], 0);
      if (pad[i] > result.size(-1 - static_cast<int64_t>(i / 2)))
        throw RuntimeError("Padding value causes wrapping around more than once.");
    }
  }
  for (size_t i = 0; i < pad.size(); i += 2) {
    const int64_t dim = input.dim() - 1 - static_cast<int64_t>(i / 2);
    if (pad[i] == 0 && pad[i + 1] == 0) continue;
    result = result.index_select(dim, pad_index(o.mode(), result.size(dim), pad[i], pad[i + 1], input));
  }
  return result;
}

}  // namespace teletensor::nn::functional
