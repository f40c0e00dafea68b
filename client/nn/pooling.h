// Pooling, resampling and padding: functions and modules beyond those of client/nn/layers.h, with libtorch's names.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "client/nn/functional.h"
#include "client/nn/module.h"
#include "client/nn/options.h"

namespace teletensor::nn {

using MaxPool1dOptions = MaxPoolOptions<1>;

struct AvgPool1dOptions {
  AvgPool1dOptions(ExpandingArray<1> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}  // NOLINT
  AvgPool1dOptions(int64_t kernel_size) : AvgPool1dOptions(ExpandingArray<1>(kernel_size)) {}           // NOLINT
  TELETENSOR_ARG(ExpandingArray<1>, kernel_size);
  TELETENSOR_ARG(ExpandingArray<1>, stride);
  TELETENSOR_ARG(ExpandingArray<1>, padding) = 0;
  TELETENSOR_ARG(bool, ceil_mode) = false;
  TELETENSOR_ARG(bool, count_include_pad) = true;
};

template <size_t D>
struct AdaptivePoolOptions {
  AdaptivePoolOptions(ExpandingArray<D> output_size) : output_size_(output_size) {}  // NOLINT
  AdaptivePoolOptions(int64_t output_size) : output_size_(output_size) {}            // NOLINT
  TELETENSOR_ARG(ExpandingArray<D>, output_size);
};
using AdaptiveAvgPool1dOptions = AdaptivePoolOptions<1>;
using AdaptiveAvgPool3dOptions = AdaptivePoolOptions<3>;
using AdaptiveMaxPool1dOptions = AdaptivePoolOptions<1>;
using AdaptiveMaxPool3dOptions = AdaptivePoolOptions<3>;

template <size_t D>
struct LPPoolOptions {
  LPPoolOptions(double norm_type, ExpandingArray<D> kernel_size)
      : norm_type_(norm_type), kernel_size_(kernel_size), stride_(kernel_size) {}
  TELETENSOR_ARG(double, norm_type);
  TELETENSOR_ARG(ExpandingArray<D>, kernel_size);
  TELETENSOR_ARG(ExpandingArray<D>, stride);
  TELETENSOR_ARG(bool, ceil_mode) = false;
};
using LPPool1dOptions = LPPoolOptions<1>;
using LPPool2dOptions = LPPoolOptions<2>;

template <size_t D>
struct MaxUnpoolOptions {
  MaxUnpoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}  // NOLINT
  MaxUnpoolOptions(int64_t kernel_size) : MaxUnpoolOptions(ExpandingArray<D>(kernel_size)) {}           // NOLINT
  TELETENSOR_ARG(ExpandingArray<D>, kernel_size);
  TELETENSOR_ARG(ExpandingArray<D>, stride);
  TELETENSOR_ARG(ExpandingArray<D>, padding) = 0;
};
using MaxUnpool1dOptions = MaxUnpoolOptions<1>;
using MaxUnpool2dOptions = MaxUnpoolOptions<2>;
using MaxUnpool3dOptions = MaxUnpoolOptions<3>;

struct UpsampleOptions {
  UpsampleOptions() = default;
  TELETENSOR_ARG(std::optional<std::vector<int64_t>>, size) = std::nullopt;
  TELETENSOR_ARG(std::optional<std::vector<double>>, scale_factor) = std::nullopt;
  TELETENSOR_ARG(std::string, mode) = "nearest";  // "linear", "bilinear", "bicubic", "trilinear", "area"
  TELETENSOR_ARG(std::optional<bool>, align_corners) = std::nullopt;
};

struct FoldOptions {
  FoldOptions(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size)
      : output_size_(output_size), kernel_size_(kernel_size) {}
  TELETENSOR_ARG(ExpandingArray<2>, output_size);
  TELETENSOR_ARG(ExpandingArray<2>, kernel_size);
  TELETENSOR_ARG(ExpandingArray<2>, dilation) = 1;
  TELETENSOR_ARG(ExpandingArray<2>, padding) = 0;
  TELETENSOR_ARG(ExpandingArray<2>, stride) = 1;
};
struct UnfoldOptions {
  UnfoldOptions(ExpandingArray<2> kernel_size) : kernel_size_(kernel_size) {}  // NOLINT
  UnfoldOptions(int64_t kernel_size) : kernel_size_(kernel_size) {}            // NOLINT
  TELETENSOR_ARG(ExpandingArray<2>, kernel_size);
  TELETENSOR_ARG(ExpandingArray<2>, dilation) = 1;
  TELETENSOR_ARG(ExpandingArray<2>, padding) = 0;
  TELETENSOR_ARG(ExpandingArray<2>, stride) = 1;
};

/// The padding of D dimensions: two numbers per dimension, the last dimension first.
template <size_t D>
struct PadOptions {
  PadOptions(ExpandingArray<2 * D> padding) : padding_(padding) {}  // NOLINT
  PadOptions(int64_t padding) : padding_(padding) {}                // NOLINT
  TELETENSOR_ARG(ExpandingArray<2 * D>, padding);
};
template <size_t D>
struct ConstantPadOptions {
  ConstantPadOptions(ExpandingArray<2 * D> padding, double value) : padding_(padding), value_(value) {}
  TELETENSOR_ARG(ExpandingArray<2 * D>, padding);
  TELETENSOR_ARG(double, value);
};

namespace functional {

using AvgPool1dFuncOptions = AvgPool1dOptions;
using MaxPool1dFuncOptions = MaxPool1dOptions;
using AdaptiveAvgPool1dFuncOptions = AdaptiveAvgPool1dOptions;
using AdaptiveAvgPool3dFuncOptions = AdaptiveAvgPool3dOptions;
using AdaptiveMaxPool1dFuncOptions = AdaptiveMaxPool1dOptions;
using AdaptiveMaxPool2dFuncOptions = AdaptiveMaxPool2dOptions;
using AdaptiveMaxPool3dFuncOptions = AdaptiveMaxPool3dOptions;
using LPPool1dFuncOptions = LPPool1dOptions;
using LPPool2dFuncOptions = LPPool2dOptions;
using FoldFuncOptions = FoldOptions;
using UnfoldFuncOptions = UnfoldOptions;

struct InterpolateFuncOptions {
  InterpolateFuncOptions() = default;
  TELETENSOR_ARG(std::optional<std::vector<int64_t>>, size) = std::nullopt;
  TELETENSOR_ARG(std::optional<std::vector<double>>, scale_factor) = std::nullopt;
  TELETENSOR_ARG(std::string, mode) = "nearest";
  TELETENSOR_ARG(std::optional<bool>, align_corners) = std::nullopt;
  TELETENSOR_ARG(std::optional<bool>, recompute_scale_factor) = std::nullopt;
};

struct PadFuncOptions {
  PadFuncOptions(std::vector<int64_t> pad) : pad_(std::move(pad)) {}  // NOLINT
  TELETENSOR_ARG(std::vector<int64_t>, pad);
  TELETENSOR_ARG(std::string, mode) = "constant";  // "reflect", "replicate" or "circular"
  TELETENSOR_ARG(double, value) = 0;
};

Tensor max_pool1d(const Tensor& input, const MaxPool1dFuncOptions& options);
Tensor avg_pool1d(const Tensor& input, const AvgPool1dFuncOptions& options);
Tensor adaptive_avg_pool1d(const Tensor& input, const AdaptiveAvgPool1dFuncOptions& options);
Tensor adaptive_avg_pool3d(const Tensor& input, const AdaptiveAvgPool3dFuncOptions& options);
Tensor adaptive_max_pool1d(const Tensor& input, const AdaptiveMaxPool1dFuncOptions& options);
Tensor adaptive_max_pool3d(const Tensor& input, const AdaptiveMaxPool3dFuncOptions& options);
/// The maxima, and their positions in the flattened plane.
std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& input, const MaxPool1dFuncOptions& options);
std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& input, const MaxPool2dFuncOptions& options);
std::tuple<Tensor, Tensor> adaptive_max_pool2d_with_indices(const Tensor& input,
                                                            const AdaptiveMaxPool2dFuncOptions& options);
/// The maxima written back to their positions, zeros elsewhere.
Tensor max_unpool1d(const Tensor& input, const Tensor& indices, const MaxUnpool1dOptions& options,
                    const std::optional<std::vector<int64_t>>& output_size = std::nullopt);
Tensor max_unpool2d(const Tensor& input, const Tensor& indices, const MaxUnpool2dOptions& options,
                    const std::optional<std::vector<int64_t>>& output_size = std::nullopt);
Tensor max_unpool3d(const Tensor& input, const Tensor& indices, const MaxUnpool3dOptions& options,
                    const std::optional<std::vector<int64_t>>& output_size = std::nullopt);
Tensor lp_pool1d(const Tensor& input, const LPPool1dFuncOptions& options);
Tensor lp_pool2d(const Tensor& input, const LPPool2dFuncOptions& options);
/// Resamples the dimensions after the first two to a size, or by a factor per dimension (or one for all).
Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& options);
/// The windows of (N, C, H, W) as columns (N, C * kh * kw, windows); fold sums columns into windows.
Tensor unfold(const Tensor& input, const UnfoldFuncOptions& options);
Tensor fold(const Tensor& input, const FoldFuncOptions& options);
Tensor pad(const Tensor& input, const PadFuncOptions& options);

}  // namespace functional

/// Declares a module with options that applies a function of nn::functional.
#define TELETENSOR_FUNCTION_MODULE(Name, Options, expression)                        \
  class Name##Impl : public Module {                                                 \
   public:                                                                           \
    using OptionsType = Options;                                                     \
    explicit Name##Impl(const Options& options) : Module(#Name), options(options) {} \
    Tensor forward(const Tensor& input) { return functional::expression; }           \
    Options options;                                                                 \
  };                                                                                 \
  TELETENSOR_MODULE(Name)

TELETENSOR_FUNCTION_MODULE(MaxPool1d, MaxPool1dOptions, max_pool1d(input, options));
TELETENSOR_FUNCTION_MODULE(AvgPool1d, AvgPool1dOptions, avg_pool1d(input, options));
TELETENSOR_FUNCTION_MODULE(AdaptiveAvgPool1d, AdaptiveAvgPool1dOptions, adaptive_avg_pool1d(input, options));
TELETENSOR_FUNCTION_MODULE(AdaptiveAvgPool3d, AdaptiveAvgPool3dOptions, adaptive_avg_pool3d(input, options));
TELETENSOR_FUNCTION_MODULE(AdaptiveMaxPool1d, AdaptiveMaxPool1dOptions, adaptive_max_pool1d(input, options));
TELETENSOR_FUNCTION_MODULE(AdaptiveMaxPool2d, AdaptiveMaxPool2dOptions,
                           adaptive_max_pool2d(input, options.output_size()));
TELETENSOR_FUNCTION_MODULE(AdaptiveMaxPool3d, AdaptiveMaxPool3dOptions, adaptive_max_pool3d(input, options));
TELETENSOR_FUNCTION_MODULE(LPPool1d, LPPool1dOptions, lp_pool1d(input, options));
TELETENSOR_FUNCTION_MODULE(LPPool2d, LPPool2dOptions, lp_pool2d(input, options));
TELETENSOR_FUNCTION_MODULE(Unfold, UnfoldOptions, unfold(input, options));
TELETENSOR_FUNCTION_MODULE(Fold, FoldOptions, fold(input, options));
TELETENSOR_FUNCTION_MODULE(Upsample, UpsampleOptions,
                           interpolate(input, functional::InterpolateFuncOptions()
                                                  .size(options.size())
                                                  .scale_factor(options.scale_factor())
                                                  .mode(options.mode())
                                                  .align_corners(options.align_corners())));

#define TELETENSOR_PAD(Name, D, mode_name) \
  using Name##Options = PadOptions<D>;     \
  TELETENSOR_FUNCTION_MODULE(              \
      Name, Name##Options,                 \
      pad(input, functional::PadFuncOptions(IntArrayRef(options.padding()).vec()).mode(mode_name)))
TELETENSOR_PAD(ReflectionPad1d, 1, "reflect");
TELETENSOR_PAD(ReflectionPad2d, 2, "reflect");
TELETENSOR_PAD(ReflectionPad3d, 3, "reflect");
TELETENSOR_PAD(ReplicationPad1d, 1, "replicate");
TELETENSOR_PAD(ReplicationPad2d, 2, "replicate");
TELETENSOR_PAD(ReplicationPad3d, 3, "replicate");
TELETENSOR_PAD(ZeroPad1d, 1, "constant");
TELETENSOR_PAD(ZeroPad2d, 2, "constant");
TELETENSOR_PAD(ZeroPad3d, 3, "constant");
#undef TELETENSOR_PAD

#define TELETENSOR_CONSTANT_PAD(Name, D)       \
  using Name##Options = ConstantPadOptions<D>; \
  TELETENSOR_FUNCTION_MODULE(                  \
      Name, Name##Options,                     \
      pad(input, functional::PadFuncOptions(IntArrayRef(options.padding()).vec()).value(options.value())))
TELETENSOR_CONSTANT_PAD(ConstantPad1d, 1);
TELETENSOR_CONSTANT_PAD(ConstantPad2d, 2);
TELETENSOR_CONSTANT_PAD(ConstantPad3d, 3);
#undef TELETENSOR_CONSTANT_PAD
#undef TELETENSOR_FUNCTION_MODULE

/// Writes maxima back to the positions that max_pool's indices name.
#define TELETENSOR_UNPOOL(Name, Options, function)                                          \
  class Name##Impl : public Module {                                                        \
   public:                                                                                  \
    using OptionsType = Options;                                                            \
    explicit Name##Impl(const Options& options) : Module(#Name), options(options) {}        \
    Tensor forward(const Tensor& input, const Tensor& indices,                              \
                   const std::optional<std::vector<int64_t>>& output_size = std::nullopt) { \
      return functional::function(input, indices, options, output_size);                    \
    }                                                                                       \
    Options options;                                                                        \
  };                                                                                        \
  TELETENSOR_MODULE(Name)
TELETENSOR_UNPOOL(MaxUnpool1d, MaxUnpool1dOptions, max_unpool1d);
TELETENSOR_UNPOOL(MaxUnpool2d, MaxUnpool2dOptions, max_unpool2d);
TELETENSOR_UNPOOL(MaxUnpool3d, MaxUnpool3dOptions, max_unpool3d);
#undef TELETENSOR_UNPOOL

}  // namespace teletensor::nn
