// Attention layers (Vaswani et al., "Attention is all you need", 2017).
#pragma once

#include <tuple>

#include "client/nn/containers.h"
#include "client/nn/layers.h"
#include "client/nn/module.h"
#include "client/nn/options.h"

namespace teletensor::nn {

/// Multi-head attention. Tensors are (L, N, E), or with batch_first (N, L, E).
class MultiheadAttentionImpl : public Module {
 public:
  using OptionsType = MultiheadAttentionOptions;
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}
  explicit MultiheadAttentionImpl(const MultiheadAttentionOptions& options);
  void reset_parameters();
  /// Returns the result and, with `need_weights`, the attention weights averaged over the heads. Both masks are either
  /// boolean (true: not attended to) or are added to the scores; key_padding_mask is (N, S), attn_mask (L, S) or
  /// (N * num_heads, L, S).
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& key_padding_mask = Tensor(), bool need_weights = true,
                                     const Tensor& attn_mask = Tensor());
  void pretty_print(std::ostream& stream) const override;
  MultiheadAttentionOptions options;
  Tensor in_proj_weight, in_proj_bias;
  Linear out_proj;
};
TELETENSOR_MODULE(MultiheadAttention);

/// Self-attention and a feed-forward network, each with a residual connection and a norm.
class TransformerEncoderLayerImpl : public Module {
 public:
  using OptionsType = TransformerEncoderLayerOptions;
  TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(d_model, nhead)) {}
  explicit TransformerEncoderLayerImpl(const TransformerEncoderLayerOptions& options);
  Tensor forward(const Tensor& src, const Tensor& src_mask = Tensor(), const Tensor& src_key_padding_mask = Tensor());
  TransformerEncoderLayerOptions options;
  MultiheadAttention self_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr};

 private:
  Tensor attend(const Tensor& x, const Tensor& mask, const Tensor& padding);
  Tensor feed_forward(const Tensor& x);
};
TELETENSOR_MODULE(TransformerEncoderLayer);

/// Self-attention, attention to a memory, and a feed-forward network, each with a residual connection and a norm.
class TransformerDecoderLayerImpl : public Module {
 public:
  using OptionsType = TransformerDecoderLayerOptions;
  TransformerDecoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerDecoderLayerImpl(TransformerDecoderLayerOptions(d_model, nhead)) {}
  explicit TransformerDecoderLayerImpl(const TransformerDecoderLayerOptions& options);
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = Tensor(),
                 const Tensor& memory_mask = Tensor(), const Tensor& tgt_key_padding_mask = Tensor(),
                 const Tensor& memory_key_padding_mask = Tensor());
  TransformerDecoderLayerOptions options;
  MultiheadAttention self_attn{nullptr}, multihead_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr}, dropout3{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr}, norm3{nullptr};
};
TELETENSOR_MODULE(TransformerDecoderLayer);

/// Layers in sequence, with an optional norm after the last. The state has PyTorch's names: "layers.0.linear1.weight".
class TransformerEncoderImpl : public Module {
 public:
  using OptionsType = TransformerEncoderOptions;
  explicit TransformerEncoderImpl(const TransformerEncoderOptions& options);
  Tensor forward(const Tensor& src, const Tensor& src_mask = Tensor(), const Tensor& src_key_padding_mask = Tensor());
  TransformerEncoderOptions options;
  ModuleList layers{nullptr};
  LayerNorm norm{nullptr};
};
TELETENSOR_MODULE(TransformerEncoder);
class TransformerDecoderImpl : public Module {
 public:
  using OptionsType = TransformerDecoderOptions;
  explicit TransformerDecoderImpl(const TransformerDecoderOptions& options);
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = Tensor(),
                 const Tensor& memory_mask = Tensor(), const Tensor& tgt_key_padding_mask = Tensor(),
                 const Tensor& memory_key_padding_mask = Tensor());
  TransformerDecoderOptions options;
  ModuleList layers{nullptr};
  LayerNorm norm{nullptr};
};
TELETENSOR_MODULE(TransformerDecoder);

/// An encoder and a decoder, each with a norm after the last layer.
class TransformerImpl : public Module {
 public:
  using OptionsType = TransformerOptions;
  explicit TransformerImpl(const TransformerOptions& options = {});
  Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask = Tensor(),
                 const Tensor& tgt_mask = Tensor(), const Tensor& memory_mask = Tensor(),
                 const Tensor& src_key_padding_mask = Tensor(), const Tensor& tgt_key_padding_mask = Tensor(),
                 const Tensor& memory_key_padding_mask = Tensor());
  void reset_parameters();
  /// A mask of scores in which a position attends to those before it and itself.
  static Tensor generate_square_subsequent_mask(int64_t size);
  TransformerOptions options;
  TransformerEncoder encoder{nullptr};
  TransformerDecoder decoder{nullptr};
};
TELETENSOR_MODULE(Transformer);

}  // namespace teletensor::nn
