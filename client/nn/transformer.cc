#include "client/nn/transformer.h"

#include <cmath>
#include <limits>
#include <ostream>

#include "client/api/creation.h"
#include "client/nn/init.h"

namespace teletensor::nn {
namespace {

// A mask as numbers that are added to scores.
Tensor additive(const Tensor& mask, Dtype dtype) {
  if (mask.dtype() != kBool) return mask.to(dtype);
  return mask.new_zeros(mask.sizes(), TensorOptions(dtype)).masked_fill(mask, -std::numeric_limits<double>::infinity());
}

void check_activation(const std::string& activation) {
  if (activation != "relu" && activation != "gelu")
    throw RuntimeError("activation should be relu/gelu, not " + activation);
}

}  // namespace

MultiheadAttentionImpl::MultiheadAttentionImpl(const MultiheadAttentionOptions& options)
    : Module("MultiheadAttention"), options(options), out_proj(nullptr) {
  if (options.embed_dim() <= 0 || options.num_heads() <= 0) {
    throw ValueError(
        "embed_dim and num_heads must be greater than 0, got embed_dim=" + std::to_string(options.embed_dim()) +
        " and num_heads=" + std::to_string(options.num_heads()) + " instead");
  }
  if (options.embed_dim() % options.num_heads() != 0) throw ValueError("embed_dim must be divisible by num_heads");
  const int64_t width = options.embed_dim();
  in_proj_weight = register_parameter("in_proj_weight", empty({3 * width, width}));
  in_proj_bias = register_parameter("in_proj_bias", options.bias() ? empty(3 * width) : Tensor());
  out_proj = register_module("out_proj", Linear(LinearOptions(width, width).bias(options.bias())));
  reset_parameters();
}

void MultiheadAttentionImpl::reset_parameters() {
  init::xavier_uniform_(in_proj_weight);
  if (!in_proj_bias.defined()) return;
  init::zeros_(in_proj_bias);
  init::zeros_(out_proj->bias);
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                           const Tensor& key_padding_mask, bool need_weights,
                                                           const Tensor& attn_mask) {
  if (query.dim() != 3 || key.dim() != 3 || value.dim() != 3) {
    throw RuntimeError("MultiheadAttention: expected tensors with 3 dimensions, got " + std::to_string(query.dim()) +
                       ", " + std::to_string(key.dim()) + " and " + std::to_string(value.dim()));
  }
  const int64_t heads = options.num_heads(), width = options.embed_dim() / heads;
  const std::vector<Tensor> weights = in_proj_weight.chunk(3);
  const std::vector<Tensor> biases = in_proj_bias.defined() ? in_proj_bias.chunk(3) : std::vector<Tensor>(3);
  // (N, heads, L, width)
  const auto project = [&](const Tensor& x, size_t part) {
    const Tensor y = linear(options.batch_first() ? x : x.transpose(0, 1), weights[part], biases[part]);
    return y.view({y.size(0), y.size(1), heads, width}).transpose(1, 2);
  };
  const Tensor q = project(query, 0), k = project(key, 1), v = project(value, 2);
  const int64_t batch = q.size(0), length = q.size(2), keys = k.size(2);
  Tensor mask;
  if (attn_mask.defined()) {
    const Tensor m = additive(attn_mask, q.dtype());
    mask = m.dim() == 3 ? m.view({batch, heads, length, keys}) : m;
  }
  if (key_padding_mask.defined()) {
    const Tensor m = additive(key_padding_mask, q.dtype()).view({batch, 1, 1, keys});
    mask = mask.defined() ? mask + m : m;
  }
  const double p = is_training() ? options.dropout() : 0;
  Tensor mixed, attention;
  if (need_weights || p > 0) {
    Tensor scores = q.matmul(k.transpose(-2, -1)) / std::sqrt(static_cast<double>(width));
    if (mask.defined()) scores = scores + mask;
    attention = scores.softmax(-1);
    if (p > 0) attention = functional::dropout(attention, functional::DropoutFuncOptions().p(p));
    mixed = attention.matmul(v);
  } else {
    mixed = functional::scaled_dot_product_attention(
        q, k, v, functional::ScaledDotProductAttentionFuncOptions().attn_mask(mask));
  }
  const Tensor joined = mixed.transpose(1, 2).reshape({batch, length, options.embed_dim()});
  const Tensor result = out_proj(joined);
  return {options.batch_first() ? result : result.transpose(0, 1), need_weights ? attention.mean(1) : Tensor()};
}

void MultiheadAttentionImpl::pretty_print(std::ostream& stream) const { stream << "MultiheadAttention"; }

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(const TransformerEncoderLayerOptions& options)
    : Module("TransformerEncoderLayer"), options(options) {
  check_activation(options.activation());
  const int64_t width = options.d_model();
  self_attn = register_module("self_attn", MultiheadAttention(MultiheadAttentionOptions(width, options.nhead())
                                                                  .dropout(options.dropout())
                                                                  .batch_first(options.batch_first())));
  linear1 = register_module("linear1", Linear(width, options.dim_feedforward()));
  dropout = register_module("dropout", Dropout(options.dropout()));
  linear2 = register_module("linear2", Linear(options.dim_feedforward(), width));
  norm1 = register_module("norm1", LayerNorm(LayerNormOptions({width})));
  norm2 = register_module("norm2", LayerNorm(LayerNormOptions({width})));
  dropout1 = register_module("dropout1", Dropout(options.dropout()));
  dropout2 = register_module("dropout2", Dropout(options.dropout()));
}

Tensor TransformerEncoderLayerImpl::attend(const Tensor& x, const Tensor& mask, const Tensor& padding) {
  return dropout1(std::get<0>(self_attn(x, x, x, padding, /*need_weights=*/false, mask)));
}
Tensor TransformerEncoderLayerImpl::feed_forward(const Tensor& x) {
  const Tensor hidden = linear1(x);
  return dropout2(linear2(dropout(options.activation() == "gelu" ? gelu(hidden) : relu(hidden))));
}

Tensor TransformerEncoderLayerImpl::forward(const Tensor& src, const Tensor& src_mask,
                                            const Tensor& src_key_padding_mask) {
  if (options.norm_first()) {
    const Tensor x = src + attend(norm1(src), src_mask, src_key_padding_mask);
    return x + feed_forward(norm2(x));
  }
  const Tensor x = norm1(src + attend(src, src_mask, src_key_padding_mask));
  return norm2(x + feed_forward(x));
}

namespace {

template <typename Options>
MultiheadAttention attention_of(const Options& o) {
  return MultiheadAttention(
      MultiheadAttentionOptions(o.d_model(), o.nhead()).dropout(o.dropout()).batch_first(o.batch_first()));
}

}  // namespace

TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(const TransformerDecoderLayerOptions& options)
    : Module("TransformerDecoderLayer"), options(options) {
  check_activation(options.activation());
  const int64_t width = options.d_model();
  self_attn = register_module("self_attn", attention_of(options));
  multihead_attn = register_module("multihead_attn", attention_of(options));
  linear1 = register_module("linear1", Linear(width, options.dim_feedforward()));
  dropout = register_module("dropout", Dropout(options.dropout()));
  linear2 = register_module("linear2", Linear(options.dim_feedforward(), width));
  norm1 = register_module("norm1", LayerNorm(LayerNormOptions({width})));
  norm2 = register_module("norm2", LayerNorm(LayerNormOptions({width})));
  norm3 = register_module("norm3", LayerNorm(LayerNormOptions({width})));
  dropout1 = register_module("dropout1", Dropout(options.dropout()));
  dropout2 = register_module("dropout2", Dropout(options.dropout()));
  dropout3 = register_module("dropout3", Dropout(options.dropout()));
}

Tensor TransformerDecoderLayerImpl::forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask,
                                            const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                            const Tensor& memory_key_padding_mask) {
  const auto attend = [&](const Tensor& x) {
    return dropout1(std::get<0>(self_attn(x, x, x, tgt_key_padding_mask, /*need_weights=*/false, tgt_mask)));
  };
  const auto attend_to_memory = [&](const Tensor& x) {
    return dropout2(
        std::get<0>(multihead_attn(x, memory, memory, memory_key_padding_mask, /*need_weights=*/false, memory_mask)));
  };
  const auto feed_forward = [&](const Tensor& x) {
    const Tensor hidden = linear1(x);
    return dropout3(linear2(dropout(options.activation() == "gelu" ? gelu(hidden) : relu(hidden))));
  };
  const auto residual = [&](const Tensor& x, LayerNorm& norm, const auto& block) {
    return options.norm_first() ? x + block(norm(x)) : norm(x + block(x));
  };
  const Tensor attended = residual(residual(tgt, norm1, attend), norm2, attend_to_memory);
  return residual(attended, norm3, feed_forward);
}

TransformerEncoderImpl::TransformerEncoderImpl(const TransformerEncoderOptions& options)
    : Module("TransformerEncoder"), options(options) {
  layers = register_module("layers", ModuleList());
  for (int64_t i = 0; i < options.num_layers(); ++i) layers->push_back(TransformerEncoderLayer(options.layer()));
  if (options.norm()) norm = register_module("norm", LayerNorm(LayerNormOptions({options.layer().d_model()})));
}
Tensor TransformerEncoderImpl::forward(const Tensor& src, const Tensor& src_mask, const Tensor& src_key_padding_mask) {
  Tensor x = src;
  for (size_t i = 0; i < layers->size(); ++i) {
    x = layers->at<TransformerEncoderLayerImpl>(i).forward(x, src_mask, src_key_padding_mask);
  }
  return norm.is_empty() ? x : norm(x);
}

TransformerDecoderImpl::TransformerDecoderImpl(const TransformerDecoderOptions& options)
    : Module("TransformerDecoder"), options(options) {
  layers = register_module("layers", ModuleList());
  for (int64_t i = 0; i < options.num_layers(); ++i) layers->push_back(TransformerDecoderLayer(options.layer()));
  if (options.norm()) norm = register_module("norm", LayerNorm(LayerNormOptions({options.layer().d_model()})));
}
Tensor TransformerDecoderImpl::forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask,
                                       const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                       const Tensor& memory_key_padding_mask) {
  Tensor x = tgt;
  for (size_t i = 0; i < layers->size(); ++i) {
    x = layers->at<TransformerDecoderLayerImpl>(i).forward(x, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                                                           memory_key_padding_mask);
  }
  return norm.is_empty() ? x : norm(x);
}

TransformerImpl::TransformerImpl(const TransformerOptions& o) : Module("Transformer"), options(o) {
  const auto layer = [&](auto made) {
    return made.dim_feedforward(o.dim_feedforward())
        .dropout(o.dropout())
        .activation(o.activation())
        .batch_first(o.batch_first())
        .norm_first(o.norm_first());
  };
  encoder = register_module(
      "encoder",
      TransformerEncoder(TransformerEncoderOptions(layer(TransformerEncoderLayerOptions(o.d_model(), o.nhead())),
                                                   o.num_encoder_layers())
                             .norm(true)));
  decoder = register_module(
      "decoder",
      TransformerDecoder(TransformerDecoderOptions(layer(TransformerDecoderLayerOptions(o.d_model(), o.nhead())),
                                                   o.num_decoder_layers())
                             .norm(true)));
  reset_parameters();
}
void TransformerImpl::reset_parameters() {
  for (const Tensor& parameter : parameters()) {
    if (parameter.dim() > 1) init::xavier_uniform_(parameter);
  }
}
Tensor TransformerImpl::forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask, const Tensor& tgt_mask,
                                const Tensor& memory_mask, const Tensor& src_key_padding_mask,
                                const Tensor& tgt_key_padding_mask, const Tensor& memory_key_padding_mask) {
  const Tensor memory = encoder(src, src_mask, src_key_padding_mask);
  return decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask);
}
Tensor TransformerImpl::generate_square_subsequent_mask(int64_t size) {
  return full({size, size}, -std::numeric_limits<double>::infinity()).triu(1);
}

}  // namespace teletensor::nn
