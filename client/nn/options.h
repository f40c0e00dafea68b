// Options of modules and of functions of nn::functional, by libtorch's names.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "client/api/errors.h"
#include "client/nn/module.h"

namespace teletensor {

/// N integers; one integer stands for N equal ones.
template <size_t N>
class ExpandingArray {
 public:
  ExpandingArray() { values_.fill(0); }
  ExpandingArray(int64_t one) { values_.fill(one); }                                         // NOLINT: an argument
  ExpandingArray(std::initializer_list<int64_t> list) { set({list.begin(), list.size()}); }  // NOLINT
  ExpandingArray(const std::vector<int64_t>& list) { set(list); }                            // NOLINT
  operator IntArrayRef() const { return {values_.data(), N}; }                               // NOLINT
  int64_t operator[](size_t i) const { return values_[i]; }

 private:
  void set(absl::Span<const int64_t> list) {
    if (list.size() == 1) return values_.fill(list[0]);
    if (list.size() != N) {
      throw ValueError("expected 1 or " + std::to_string(N) + " numbers, got " + std::to_string(list.size()));
    }
    std::copy(list.begin(), list.end(), values_.begin());
  }
  std::array<int64_t, N> values_;
};

namespace nn {

struct LinearOptions {
  LinearOptions(int64_t in_features, int64_t out_features) : in_features_(in_features), out_features_(out_features) {}
  TELETENSOR_ARG(int64_t, in_features);
  TELETENSOR_ARG(int64_t, out_features);
  TELETENSOR_ARG(bool, bias) = true;
};

template <size_t D>
struct ConvOptions {
  ConvOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  TELETENSOR_ARG(int64_t, in_channels);
  TELETENSOR_ARG(int64_t, out_channels);
  TELETENSOR_ARG(ExpandingArray<D>, kernel_size);
  TELETENSOR_ARG(ExpandingArray<D>, stride) = 1;
  TELETENSOR_ARG(ExpandingArray<D>, padding) = 0;
  TELETENSOR_ARG(ExpandingArray<D>, dilation) = 1;
  TELETENSOR_ARG(int64_t, groups) = 1;
  TELETENSOR_ARG(bool, bias) = true;
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

template <size_t D>
struct ConvTransposeOptions {
  ConvTransposeOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  TELETENSOR_ARG(int64_t, in_channels);
  TELETENSOR_ARG(int64_t, out_channels);
  TELETENSOR_ARG(ExpandingArray<D>, kernel_size);
  TELETENSOR_ARG(ExpandingArray<D>, stride) = 1;
  TELETENSOR_ARG(ExpandingArray<D>, padding) = 0;
  TELETENSOR_ARG(ExpandingArray<D>, output_padding) = 0;
  TELETENSOR_ARG(ExpandingArray<D>, dilation) = 1;
  TELETENSOR_ARG(int64_t, groups) = 1;
  TELETENSOR_ARG(bool, bias) = true;
};
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;

struct BatchNormOptions {
  BatchNormOptions(int64_t num_features) : num_features_(num_features) {}  // NOLINT: as libtorch's
  TELETENSOR_ARG(int64_t, num_features);
  TELETENSOR_ARG(double, eps) = 1e-5;
  TELETENSOR_ARG(std::optional<double>, momentum) = 0.1;
  TELETENSOR_ARG(bool, affine) = true;
  TELETENSOR_ARG(bool, track_running_stats) = true;
};
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;
using BatchNorm3dOptions = BatchNormOptions;

struct LayerNormOptions {
  LayerNormOptions(std::vector<int64_t> normalized_shape) : normalized_shape_(std::move(normalized_shape)) {}  // NOLINT
  TELETENSOR_ARG(std::vector<int64_t>, normalized_shape);
  TELETENSOR_ARG(double, eps) = 1e-5;
  TELETENSOR_ARG(bool, elementwise_affine) = true;
};

struct GroupNormOptions {
  GroupNormOptions(int64_t num_groups, int64_t num_channels) : num_groups_(num_groups), num_channels_(num_channels) {}
  TELETENSOR_ARG(int64_t, num_groups);
  TELETENSOR_ARG(int64_t, num_channels);
  TELETENSOR_ARG(double, eps) = 1e-5;
  TELETENSOR_ARG(bool, affine) = true;
};

struct EmbeddingOptions {
  EmbeddingOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  TELETENSOR_ARG(int64_t, num_embeddings);
  TELETENSOR_ARG(int64_t, embedding_dim);
  TELETENSOR_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};

struct EmbeddingBagOptions {
  EmbeddingBagOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  TELETENSOR_ARG(int64_t, num_embeddings);
  TELETENSOR_ARG(int64_t, embedding_dim);
  TELETENSOR_ARG(std::string, mode) = "mean";  // "sum", "mean" or "max"
};

struct DropoutOptions {
  DropoutOptions(double p = 0.5) : p_(p) {}  // NOLINT
  TELETENSOR_ARG(double, p);
};

template <size_t D>
struct MaxPoolOptions {
  MaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}  // NOLINT
  MaxPoolOptions(int64_t kernel_size) : MaxPoolOptions(ExpandingArray<D>(kernel_size)) {}             // NOLINT
  TELETENSOR_ARG(ExpandingArray<D>, kernel_size);
  TELETENSOR_ARG(ExpandingArray<D>, stride);
  TELETENSOR_ARG(ExpandingArray<D>, padding) = 0;
  TELETENSOR_ARG(ExpandingArray<D>, dilation) = 1;
  TELETENSOR_ARG(bool, ceil_mode) = false;
};
using MaxPool2dOptions = MaxPoolOptions<2>;
using MaxPool3dOptions = MaxPoolOptions<3>;

template <size_t D>
struct AvgPoolOptions {
  AvgPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}  // NOLINT
  AvgPoolOptions(int64_t kernel_size) : AvgPoolOptions(ExpandingArray<D>(kernel_size)) {}             // NOLINT
  TELETENSOR_ARG(ExpandingArray<D>, kernel_size);
  TELETENSOR_ARG(ExpandingArray<D>, stride);
  TELETENSOR_ARG(ExpandingArray<D>, padding) = 0;
  TELETENSOR_ARG(bool, ceil_mode) = false;
  TELETENSOR_ARG(bool, count_include_pad) = true;
  TELETENSOR_ARG(std::optional<int64_t>, divisor_override) = std::nullopt;
};
using AvgPool2dOptions = AvgPoolOptions<2>;
using AvgPool3dOptions = AvgPoolOptions<3>;

struct AdaptivePool2dOptions {
  AdaptivePool2dOptions(ExpandingArray<2> output_size) : output_size_(output_size) {}  // NOLINT
  AdaptivePool2dOptions(int64_t output_size) : output_size_(output_size) {}            // NOLINT
  TELETENSOR_ARG(ExpandingArray<2>, output_size);
};
using AdaptiveAvgPool2dOptions = AdaptivePool2dOptions;
using AdaptiveMaxPool2dOptions = AdaptivePool2dOptions;

struct FlattenOptions {
  FlattenOptions() = default;
  TELETENSOR_ARG(int64_t, start_dim) = 1;
  TELETENSOR_ARG(int64_t, end_dim) = -1;
};

/// Of LSTM, GRU and RNN.
struct RecurrentOptions {
  RecurrentOptions(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  TELETENSOR_ARG(int64_t, input_size);
  TELETENSOR_ARG(int64_t, hidden_size);
  TELETENSOR_ARG(int64_t, num_layers) = 1;
  TELETENSOR_ARG(bool, bias) = true;
  TELETENSOR_ARG(bool, batch_first) = false;
  TELETENSOR_ARG(double, dropout) = 0;
  TELETENSOR_ARG(bool, bidirectional) = false;
  TELETENSOR_ARG(std::string, nonlinearity) = "tanh";  // of RNN: "tanh" or "relu"
};
using LSTMOptions = RecurrentOptions;
using GRUOptions = RecurrentOptions;
using RNNOptions = RecurrentOptions;

struct MultiheadAttentionOptions {
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads) : embed_dim_(embed_dim), num_heads_(num_heads) {}
  TELETENSOR_ARG(int64_t, embed_dim);
  TELETENSOR_ARG(int64_t, num_heads);
  TELETENSOR_ARG(double, dropout) = 0;
  TELETENSOR_ARG(bool, bias) = true;
  TELETENSOR_ARG(bool, batch_first) = false;
};

struct TransformerEncoderLayerOptions {
  TransformerEncoderLayerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  TELETENSOR_ARG(int64_t, d_model);
  TELETENSOR_ARG(int64_t, nhead);
  TELETENSOR_ARG(int64_t, dim_feedforward) = 2048;
  TELETENSOR_ARG(double, dropout) = 0.1;
  TELETENSOR_ARG(std::string, activation) = "relu";  // or "gelu"
  TELETENSOR_ARG(bool, batch_first) = false;
  TELETENSOR_ARG(bool, norm_first) = false;
};

using TransformerDecoderLayerOptions = TransformerEncoderLayerOptions;

/// Of TransformerEncoder and TransformerDecoder.
template <typename LayerOptions>
struct TransformerStackOptions {
  TransformerStackOptions(const LayerOptions& layer, int64_t num_layers) : layer_(layer), num_layers_(num_layers) {}
  TELETENSOR_ARG(LayerOptions, layer);
  TELETENSOR_ARG(int64_t, num_layers);
  TELETENSOR_ARG(bool, norm) = false;  // a LayerNorm after the last layer
};
using TransformerEncoderOptions = TransformerStackOptions<TransformerEncoderLayerOptions>;
using TransformerDecoderOptions = TransformerStackOptions<TransformerDecoderLayerOptions>;

struct TransformerOptions {
  TransformerOptions() = default;
  TransformerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  TELETENSOR_ARG(int64_t, d_model) = 512;
  TELETENSOR_ARG(int64_t, nhead) = 8;
  TELETENSOR_ARG(int64_t, num_encoder_layers) = 6;
  TELETENSOR_ARG(int64_t, num_decoder_layers) = 6;
  TELETENSOR_ARG(int64_t, dim_feedforward) = 2048;
  TELETENSOR_ARG(double, dropout) = 0.1;
  TELETENSOR_ARG(std::string, activation) = "relu";
  TELETENSOR_ARG(bool, batch_first) = false;
  TELETENSOR_ARG(bool, norm_first) = false;
};

/// Of losses: "none", "mean" or "sum".
struct LossOptions {
  TELETENSOR_ARG(std::string, reduction) = "mean";
};
struct CrossEntropyLossOptions {
  TELETENSOR_ARG(Tensor, weight);
  TELETENSOR_ARG(int64_t, ignore_index) = -100;
  TELETENSOR_ARG(std::string, reduction) = "mean";
  TELETENSOR_ARG(double, label_smoothing) = 0;
};
struct NLLLossOptions {
  TELETENSOR_ARG(Tensor, weight);
  TELETENSOR_ARG(int64_t, ignore_index) = -100;
  TELETENSOR_ARG(std::string, reduction) = "mean";
};
struct BCELossOptions {
  TELETENSOR_ARG(Tensor, weight);
  TELETENSOR_ARG(std::string, reduction) = "mean";
};
struct BCEWithLogitsLossOptions {
  TELETENSOR_ARG(Tensor, weight);
  TELETENSOR_ARG(std::string, reduction) = "mean";
  TELETENSOR_ARG(Tensor, pos_weight);
};
struct SmoothL1LossOptions {
  TELETENSOR_ARG(std::string, reduction) = "mean";
  TELETENSOR_ARG(double, beta) = 1;
};
struct HuberLossOptions {
  TELETENSOR_ARG(std::string, reduction) = "mean";
  TELETENSOR_ARG(double, delta) = 1;
};
struct KLDivLossOptions {
  TELETENSOR_ARG(std::string, reduction) = "mean";
  TELETENSOR_ARG(bool, log_target) = false;
};

}  // namespace nn
}  // namespace teletensor
