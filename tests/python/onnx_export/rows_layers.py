"""Layers: convolutions, pools, norms, attention, recurrent layers, losses, resizing, padding."""

from __future__ import annotations

from typing import Any

from .cases import Case


def _layer(make: Any, *inputs: str, **options: Any) -> Case:
    return Case(make, list(inputs), is_module=True, **options)


def _fn(function: Any, *inputs: str, **options: Any) -> Case:
    return Case(function, list(inputs), **options)


ROWS: dict[str, Case] = {
    # Convolutions
    "conv1d": _layer(lambda t: t.nn.Conv1d(3, 4, 3, stride=2, padding=1), "f:n,3,9"),
    "conv2d": _layer(lambda t: t.nn.Conv2d(3, 4, 3, padding=1), "f:n,3,7,8"),
    "conv2d-dynamic-size": _layer(lambda t: t.nn.Conv2d(3, 4, 3, padding=1), "f:2,3,7,m"),
    "conv2d-dilated-groups": _layer(lambda t: t.nn.Conv2d(4, 8, (3, 2), dilation=2, groups=2, bias=False), "f:n,4,9,8"),
    "conv2d-same": _layer(lambda t: t.nn.Conv2d(3, 4, (4, 3), padding="same"), "f:n,3,7,8"),
    "conv2d-reflect": _layer(lambda t: t.nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), "f:n,3,7,8"),
    "conv2d-circular": _layer(lambda t: t.nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), "f:n,3,7,8"),
    "conv2d-unbatched": _layer(lambda t: t.nn.Conv2d(3, 4, 3), "f:3,7,8"),
    "conv3d": _layer(lambda t: t.nn.Conv3d(2, 3, 2, stride=(1, 2, 1)), "f:n,2,4,5,4"),
    "conv_transpose1d": _layer(lambda t: t.nn.ConvTranspose1d(3, 4, 3, stride=2), "f:n,3,5"),
    "conv_transpose2d": _layer(lambda t: t.nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), "f:n,4,5,4"),
    "conv_transpose2d-dilated": _layer(lambda t: t.nn.ConvTranspose2d(3, 2, 3, dilation=2, bias=False), "f:n,3,5,4"),
    "conv_transpose3d": _layer(lambda t: t.nn.ConvTranspose3d(2, 3, 2), "f:n,2,3,3,2"),
    "depthwise": _layer(lambda t: t.nn.Conv2d(4, 4, 3, padding=1, groups=4), "f:n,4,7,7"),
    "unfold": _layer(lambda t: t.nn.Unfold((2, 3), padding=1, stride=2, dilation=1), "f:n,2,6,7"),
    "fold": _layer(lambda t: t.nn.Fold((5, 6), (2, 3)), "f:n,12,16"),
    # Pools
    "max_pool1d": _layer(lambda t: t.nn.MaxPool1d(3, 2), "f:n,2,9"),
    "max_pool2d": _layer(lambda t: t.nn.MaxPool2d(3, 2, 1), "f:n,2,9,8"),
    "max_pool2d-ceil": _layer(lambda t: t.nn.MaxPool2d(3, 2, 1, ceil_mode=True), "f:n,2,8,10"),
    "max_pool2d-ceil-2": _layer(lambda t: t.nn.MaxPool2d(2, 3, ceil_mode=True), "f:n,2,8,10"),
    "max_pool2d-dilated": _layer(lambda t: t.nn.MaxPool2d(2, 1, dilation=2), "f:n,2,8,9"),
    "max_pool2d-indices": _layer(lambda t: t.nn.MaxPool2d(2, 2, return_indices=True), "f:n,2,8,6"),
    "max_pool2d-indices-padding": _layer(lambda t: t.nn.MaxPool2d(3, 2, 1, return_indices=True), "f:n,2,7,6"),
    "max_pool3d": _layer(lambda t: t.nn.MaxPool3d(2), "f:n,2,4,6,4"),
    "max_unpool2d": _fn(lambda t, x: t.nn.functional.max_unpool2d(*t.nn.functional.max_pool2d(x, 2, return_indices=True), 2), "f:n,2,8,6"),
    "avg_pool1d": _layer(lambda t: t.nn.AvgPool1d(3, 2, 1), "f:n,2,9"),
    "avg_pool2d": _layer(lambda t: t.nn.AvgPool2d(3, 2, 1), "f:n,2,9,8"),
    "avg_pool2d-exclude": _layer(lambda t: t.nn.AvgPool2d(3, 2, 1, count_include_pad=False), "f:n,2,9,8"),
    "avg_pool2d-ceil": _layer(lambda t: t.nn.AvgPool2d(3, 2, 1, ceil_mode=True), "f:n,2,8,10"),
    "avg_pool2d-ceil-exclude": _layer(lambda t: t.nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False), "f:n,2,8,10"),
    "avg_pool2d-ceil-no-padding": _layer(lambda t: t.nn.AvgPool2d(2, 2, ceil_mode=True), "f:n,2,7,9"),
    "avg_pool2d-divisor": _layer(lambda t: t.nn.AvgPool2d(2, divisor_override=3), "f:n,2,8,8"),
    "avg_pool3d": _layer(lambda t: t.nn.AvgPool3d(2), "f:n,2,4,4,6"),
    "lp_pool2d": _layer(lambda t: t.nn.LPPool2d(2, 2), "f:n,2,4,6"),
    "adaptive_avg_pool1d": _layer(lambda t: t.nn.AdaptiveAvgPool1d(3), "f:n,2,9"),
    "adaptive_avg_pool2d": _layer(lambda t: t.nn.AdaptiveAvgPool2d((3, 5)), "f:n,2,7,9"),
    "adaptive_avg_pool2d-1": _layer(lambda t: t.nn.AdaptiveAvgPool2d(1), "f:n,2,7,m"),
    "adaptive_avg_pool2d-divisible": _layer(lambda t: t.nn.AdaptiveAvgPool2d((2, None)), "f:n,2,8,9"),
    "adaptive_avg_pool3d": _layer(lambda t: t.nn.AdaptiveAvgPool3d(2), "f:n,2,4,5,6"),
    "adaptive_max_pool1d": _layer(lambda t: t.nn.AdaptiveMaxPool1d(2), "f:n,2,9"),
    "adaptive_max_pool2d": _layer(lambda t: t.nn.AdaptiveMaxPool2d((3, 2)), "f:n,2,7,8"),
    "adaptive_max_pool2d-indices": _layer(lambda t: t.nn.AdaptiveMaxPool2d(2, return_indices=True), "f:n,2,8,6"),
    # Norms
    "batch_norm1d": _layer(lambda t: t.nn.BatchNorm1d(3), "f:n,3"),
    "batch_norm2d": _layer(lambda t: t.nn.BatchNorm2d(3), "f:n,3,4,4"),
    "batch_norm2d-plain": _layer(lambda t: t.nn.BatchNorm2d(3, affine=False), "f:n,3,4,4"),
    "batch_norm2d-batch-statistics": _layer(lambda t: t.nn.BatchNorm2d(3, track_running_stats=False), "f:n,3,4,4"),
    "layer_norm": _layer(lambda t: t.nn.LayerNorm(4), "f:n,3,4"),
    "layer_norm-2d": _layer(lambda t: t.nn.LayerNorm([3, 4], eps=1e-3), "f:n,3,4"),
    "layer_norm-plain": _layer(lambda t: t.nn.LayerNorm(4, elementwise_affine=False), "f:n,3,4"),
    "layer_norm-no-bias": _layer(lambda t: t.nn.LayerNorm(4, bias=False), "f:n,3,4"),
    "rms_norm": _layer(lambda t: t.nn.RMSNorm(4), "f:n,3,4"),
    "rms_norm-plain": _layer(lambda t: t.nn.RMSNorm(4, elementwise_affine=False, eps=1e-3), "f:n,3,4"),
    "group_norm": _layer(lambda t: t.nn.GroupNorm(2, 6), "f:n,6,4,4"),
    "group_norm-plain": _layer(lambda t: t.nn.GroupNorm(3, 6, affine=False), "f:n,6,5"),
    "instance_norm": _layer(lambda t: t.nn.InstanceNorm2d(3), "f:n,3,4,5"),
    "instance_norm-affine": _layer(lambda t: t.nn.InstanceNorm1d(3, affine=True), "f:n,3,5"),
    "local_response_norm": _layer(lambda t: t.nn.LocalResponseNorm(3), "f:n,5,4,4"),
    "native_layer_norm": _fn(lambda t, x: t.native_layer_norm(x, [4], None, None, 1e-5), "f:n,3,4"),
    "native_group_norm": _fn(lambda t, x: t.ops.aten.native_group_norm(x, None, None, 2, 6, 4, 3, 1e-5), "f:2,6,4"),
    "weight_norm": _layer(lambda t: t.nn.utils.parametrizations.weight_norm(t.nn.Linear(3, 4)), "f:n,3"),
    # Attention
    "attention": _fn(lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v), "f:n,2,m,8", "f:n,2,k,8", "f:n,2,k,8"),
    "attention-causal": _fn(lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
                            "f:n,2,m,8", "f:n,2,m,8", "f:n,2,m,8"),
    "attention-scale": _fn(lambda t, q: t.nn.functional.scaled_dot_product_attention(q, q, q, scale=0.1), "f:n,2,m,8"),
    "attention-mask": _fn(lambda t, q, m: t.nn.functional.scaled_dot_product_attention(q, q, q, m), "f:n,2,m,8", "f:m,m"),
    "attention-bool-mask": _fn(
        lambda t, q, m: t.nn.functional.scaled_dot_product_attention(q, q, q, m | t.eye(4, dtype=t.bool)), "f:n,2,4,8", "b:4,4"),
    "attention-3d": _fn(lambda t, q: t.nn.functional.scaled_dot_product_attention(q, q, q), "f:n,m,8"),
    "attention-value-width": _fn(lambda t, q, v: t.nn.functional.scaled_dot_product_attention(q, q, v), "f:n,2,m,8", "f:n,2,m,6"),
    "attention-grouped": _fn(lambda t, q, k: t.nn.functional.scaled_dot_product_attention(q, k, k, enable_gqa=True),
                             "f:n,4,m,8", "f:n,2,m,8"),
    "multihead_attention": _fn(None, "f:n,m,8"),
    "transformer_layer": _layer(lambda t: t.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), "f:n,m,8"),
    "transformer_layer-norm-first": _layer(lambda t: t.nn.TransformerEncoderLayer(8, 2, 16, norm_first=True, activation="gelu"), "f:m,n,8"),
    "transformer_encoder": _layer(
        lambda t: t.nn.TransformerEncoder(t.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2), "f:n,m,8"),
    "transformer_decoder_layer": _layer(lambda t: t.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), "f:n,m,8", "f:n,k,8"),
    "transformer": _layer(lambda t: t.nn.Transformer(8, 2, 1, 1, 16, batch_first=True), "f:n,m,8", "f:n,k,8"),
    # Recurrent
    "lstm": _layer(lambda t: t.nn.LSTM(3, 4), "f:m,n,3"),
    "lstm-layers": _layer(lambda t: t.nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True), "f:n,m,3"),
    "lstm-no-bias": _layer(lambda t: t.nn.LSTM(3, 4, bias=False), "f:m,n,3"),
    "lstm-unbatched": _layer(lambda t: t.nn.LSTM(3, 4), "f:m,3"),
    "lstm-states": _fn(None, "f:m,n,3", "f:1,n,4"),
    "gru": _layer(lambda t: t.nn.GRU(3, 4, 2, bidirectional=True), "f:m,n,3"),
    "gru-batch-first": _layer(lambda t: t.nn.GRU(3, 4, batch_first=True), "f:n,m,3"),
    "rnn": _layer(lambda t: t.nn.RNN(3, 4, 2), "f:m,n,3"),
    "rnn-relu": _layer(lambda t: t.nn.RNN(3, 4, nonlinearity="relu", bidirectional=True), "f:m,n,3"),
    "lstm_cell": _layer(lambda t: t.nn.LSTMCell(3, 4), "f:n,3"),
    "gru_cell": _layer(lambda t: t.nn.GRUCell(3, 4), "f:n,3"),
    "rnn_cell": _layer(lambda t: t.nn.RNNCell(3, 4), "f:n,3"),
    # Embeddings
    "embedding": _layer(lambda t: t.nn.Embedding(5, 4, padding_idx=1), "i5:n,m"),
    "embedding_bag": _layer(lambda t: t.nn.EmbeddingBag(5, 4, mode="mean"), "i5:n,3"),
    "embedding_bag-sum": _layer(lambda t: t.nn.EmbeddingBag(5, 4, mode="sum"), "i5:n,3"),
    # Resizing
    "nearest-2x": _fn(lambda t, x: t.nn.functional.interpolate(x, scale_factor=2), "f:n,2,4,5"),
    "nearest-size": _fn(lambda t, x: t.nn.functional.interpolate(x, size=(7, 3)), "f:n,2,4,5"),
    "nearest-exact": _fn(lambda t, x: t.nn.functional.interpolate(x, size=(7, 3), mode="nearest-exact"), "f:n,2,4,5"),
    "nearest-1d": _fn(lambda t, x: t.nn.functional.interpolate(x, scale_factor=1.5), "f:n,2,5"),
    "nearest-3d": _fn(lambda t, x: t.nn.functional.interpolate(x, scale_factor=2), "f:n,2,2,3,2"),
    "nearest-dynamic": _fn(lambda t, x: t.nn.functional.interpolate(x, scale_factor=2), "f:n,2,4,m"),
    "linear-resize": _fn(lambda t, x: t.nn.functional.interpolate(x, size=9, mode="linear"), "f:n,2,5"),
    "bilinear": _fn(lambda t, x: t.nn.functional.interpolate(x, size=(7, 3), mode="bilinear"), "f:n,2,4,5"),
    "bilinear-to-1": _fn(lambda t, x: t.nn.functional.interpolate(x, size=(1, 1), mode="bilinear"), "f:n,2,4,5"),
    "bilinear-aligned": _fn(lambda t, x: t.nn.functional.interpolate(x, size=(7, 3), mode="bilinear", align_corners=True), "f:n,2,4,5"),
    "bilinear-factor": _fn(lambda t, x: t.nn.functional.interpolate(x, scale_factor=1.7, mode="bilinear"), "f:n,2,4,5"),
    "bilinear-recomputed": _fn(
        lambda t, x: t.nn.functional.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True), "f:n,2,4,5"),
    "bicubic": _fn(lambda t, x: t.nn.functional.interpolate(x, size=(7, 8), mode="bicubic"), "f:n,2,4,5"),
    "bicubic-aligned": _fn(lambda t, x: t.nn.functional.interpolate(x, size=(7, 8), mode="bicubic", align_corners=True), "f:n,2,4,5"),
    "trilinear": _fn(lambda t, x: t.nn.functional.interpolate(x, scale_factor=2, mode="trilinear"), "f:n,1,2,3,2"),
    "area": _fn(lambda t, x: t.nn.functional.interpolate(x, size=(2, 3), mode="area"), "f:n,2,4,5"),
    "upsample": _layer(lambda t: t.nn.Upsample(scale_factor=2, mode="bilinear"), "f:n,2,3,m"),
    "antialias": _fn(lambda t, x: t.nn.functional.interpolate(x, size=(3, 3), mode="bilinear", antialias=True), "f:n,2,7,9"),
    "grid_sample": _fn(lambda t, x, g: t.nn.functional.grid_sample(x, g.tanh(), align_corners=False), "f:n,2,4,5", "f:n,3,3,2"),
    "grid_sample-nearest": _fn(
        lambda t, x, g: t.nn.functional.grid_sample(x, g, "nearest", "border", align_corners=True), "f:n,2,4,5", "f:n,3,3,2"),
    "grid_sample-reflection": _fn(
        lambda t, x, g: t.nn.functional.grid_sample(x, g, "bilinear", "reflection", align_corners=False), "f:n,2,4,5", "f:n,3,3,2"),
    "grid_sample-3d": _fn(
        lambda t, x, g: t.nn.functional.grid_sample(x, g, align_corners=False), "f:n,2,3,4,5", "f:n,2,3,3,3", opsets=(20, 23)),
    "affine_grid": _fn(lambda t, x: t.nn.functional.affine_grid(x, [3, 2, 4, 5], align_corners=False), "f:3,2,3"),
    # Padding
    "pad": _fn(lambda t, x: t.nn.functional.pad(x, (1, 2, 3, 0), value=7.0), "f:n,3,4"),
    "pad-negative": _fn(lambda t, x: t.nn.functional.pad(x, (-1, 2)), "f:n,3,4"),
    "pad-integers": _fn(lambda t, x: t.nn.functional.pad(x, (1, 1), value=3), "i:n,3"),
    "pad-booleans": _fn(lambda t, x: t.nn.functional.pad(x, (1, 1), value=True), "b:n,3"),
    "pad-reflect": _fn(lambda t, x: t.nn.functional.pad(x, (1, 2), mode="reflect"), "f:n,3,4"),
    "pad-replicate": _fn(lambda t, x: t.nn.functional.pad(x, (1, 2, 0, 1), mode="replicate"), "f:n,2,3,4"),
    "pad-circular": _fn(lambda t, x: t.nn.functional.pad(x, (1, 2), mode="circular"), "f:n,3,4"),
    "pad-circular-cropped": _fn(lambda t, x: t.nn.functional.pad(x, (-1, 2, 1, -1), mode="circular"), "f:2,3,3,4"),
    "reflection_pad3d": _layer(lambda t: t.nn.ReflectionPad3d(1), "f:n,2,3,3,4"),
    "replication_pad3d": _layer(lambda t: t.nn.ReplicationPad3d(1), "f:n,2,3,3,4"),
    "zero_pad2d": _layer(lambda t: t.nn.ZeroPad2d((1, 0, 2, 1)), "f:n,2,3,4"),
    # Other modules
    "multi_margin_loss": _layer(lambda t: t.nn.MultiMarginLoss(), "f:n,5", "i5:n"),
    "triplet_margin_with_distance_loss": _layer(lambda t: t.nn.TripletMarginWithDistanceLoss(), "f:n,4", "f:n,4", "f:n,4"),
    "lp_pool1d": _layer(lambda t: t.nn.LPPool1d(2, 2), "f:n,2,8"),
    "lp_pool3d": _layer(lambda t: t.nn.LPPool3d(2, 2), "f:n,2,4,4,4"),
    "adaptive_max_pool3d": _layer(lambda t: t.nn.AdaptiveMaxPool3d(2), "f:n,2,4,5,6"),
    "softmax2d": _layer(lambda t: t.nn.Softmax2d(), "f:n,3,4,4"),
    "alpha_dropout": _layer(lambda t: t.nn.AlphaDropout(), "f:n,3"),
    "instance_norm-running": _layer(lambda t: t.nn.InstanceNorm3d(2, track_running_stats=True), "f:n,2,3,4,4"),
    "sync_batch_norm": _layer(lambda t: t.nn.SyncBatchNorm(3), "f:n,3,4"),
    "adaptive_log_softmax": _layer(lambda t: t.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6]), "f:4,8", "i5:4"),
    "embedding_bag-max": _layer(lambda t: t.nn.EmbeddingBag(5, 4, mode="max"), "i5:n,3"),
    "gaussian_nll_loss-full": _layer(lambda t: t.nn.GaussianNLLLoss(full=True), "f:n,3", "f:n,3", "p:n,3"),
    "poisson_nll_loss-full": _layer(lambda t: t.nn.PoissonNLLLoss(full=True), "f:n,3", "p:n,3"),
    "poisson_nll_loss-rates": _layer(lambda t: t.nn.PoissonNLLLoss(log_input=False), "p:n,3", "p:n,3"),
    "transformer_decoder": _layer(
        lambda t: t.nn.TransformerDecoder(t.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2), "f:n,m,8", "f:n,k,8"),
    "upsampling_bilinear2d": _layer(lambda t: t.nn.UpsamplingBilinear2d(scale_factor=2), "f:n,2,3,4"),
    "circular_pad2d": _layer(lambda t: t.nn.CircularPad2d(1), "f:n,2,3,4"),
    "index_reduce": _fn(
        lambda t, x, i, s: (x.index_reduce(1, i, s, "amax"), x.index_reduce(1, i, s, "mean", include_self=False)),
        "f:n,5", "i5:3", "f:n,3"),
    # Shuffles
    "pixel_shuffle": _layer(lambda t: t.nn.PixelShuffle(2), "f:n,8,3,m"),
    "pixel_unshuffle": _layer(lambda t: t.nn.PixelUnshuffle(2), "f:n,2,4,6"),
    "channel_shuffle": _layer(lambda t: t.nn.ChannelShuffle(2), "f:n,4,3,2"),
    # Losses
    "mse_loss": _fn(lambda t, x, y: (t.nn.functional.mse_loss(x, y), t.nn.functional.mse_loss(x, y, reduction="none")), "f:n,3", "f:n,3"),
    "l1_loss": _fn(lambda t, x, y: t.nn.functional.l1_loss(x, y, reduction="sum"), "f:n,3", "f:n,3"),
    "smooth_l1_loss": _fn(lambda t, x, y: t.nn.functional.smooth_l1_loss(x, y, beta=0.5), "f:n,3", "f:n,3"),
    "huber_loss": _fn(lambda t, x, y: t.nn.functional.huber_loss(x, y, delta=0.5), "f:n,3", "f:n,3"),
    "bce": _fn(lambda t, x, y: t.nn.functional.binary_cross_entropy(x, y), "q:n,3", "q:n,3"),
    "bce-logits": _fn(
        lambda t, x, y, w: t.nn.functional.binary_cross_entropy_with_logits(x, y, pos_weight=w), "f:n,3", "q:n,3", "p:3"),
    "kl_div": _fn(lambda t, x, y: t.nn.functional.kl_div(x, y, reduction="batchmean"), "f:n,3", "q:n,3"),
    "cross_entropy": _fn(lambda t, x, y: t.nn.functional.cross_entropy(x, y), "f:n,5", "i5:n"),
    "cross_entropy-none": _fn(lambda t, x, y: t.nn.functional.cross_entropy(x, y, reduction="none"), "f:n,5,m", "i5:n,m"),
    "cross_entropy-weight": _fn(
        lambda t, x, y, w: t.nn.functional.cross_entropy(x, y, w, ignore_index=2), "f:n,5", "i5:n", "p:5"),
    "cross_entropy-smooth": _fn(lambda t, x, y: t.nn.functional.cross_entropy(x, y, label_smoothing=0.1), "f:n,5", "i5:n"),
    "cross_entropy-smooth-weight": _fn(
        lambda t, x, y, w: t.nn.functional.cross_entropy(x, y, w, label_smoothing=0.1), "f:n,5", "i5:n", "p:5"),
    "cross_entropy-probabilities": _fn(lambda t, x, y: t.nn.functional.cross_entropy(x, y.softmax(1)), "f:n,5", "f:n,5"),
    "nll_loss": _fn(lambda t, x, y: t.nn.functional.nll_loss(x.log_softmax(1), y, ignore_index=1), "f:n,5", "i5:n"),
    "soft_margin_loss": _fn(lambda t, x, y: t.nn.functional.soft_margin_loss(x, y.sign()), "f:n,3", "f:n,3"),
    "margin_ranking_loss": _fn(lambda t, x, y, z: t.nn.functional.margin_ranking_loss(x, y, z.sign(), 0.1), "f:n", "f:n", "f:n"),
    "hinge_embedding_loss": _fn(lambda t, x, y: t.nn.functional.hinge_embedding_loss(x, y.sign()), "f:n,3", "f:n,3"),
    "cosine_embedding_loss": _fn(lambda t, x, y, z: t.nn.functional.cosine_embedding_loss(x, y, z.sign(), 0.1), "f:n,3", "f:n,3", "f:n"),
    "triplet_margin_loss": _fn(lambda t, x, y, z: t.nn.functional.triplet_margin_loss(x, y, z), "f:n,3", "f:n,3", "f:n,3"),
    "gaussian_nll_loss": _fn(lambda t, x, y, z: t.nn.functional.gaussian_nll_loss(x, y, z), "f:n,3", "f:n,3", "p:n,3"),
    "poisson_nll_loss": _fn(lambda t, x, y: t.nn.functional.poisson_nll_loss(x, y), "f:n,3", "p:n,3"),
    "multilabel_soft_margin_loss": _fn(lambda t, x, y: t.nn.functional.multilabel_soft_margin_loss(x, y), "f:n,3", "q:n,3"),
}  # fmt: skip


def _attention_module(t: Any) -> Any:
    class Attention(t.nn.Module):
        """Self-attention with weights."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = t.nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x: Any) -> Any:
            """Both results."""
            return self.layer(x, x, x)

    return Attention()


def _lstm_module(t: Any) -> Any:
    class States(t.nn.Module):
        """An LSTM with given states."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = t.nn.LSTM(3, 4)

        def forward(self, x: Any, h: Any) -> Any:
            """All results."""
            return self.layer(x, (h, h * 2))

    return States()


ROWS["multihead_attention"] = _layer(_attention_module, "f:n,m,8")
ROWS["lstm-states"] = _layer(_lstm_module, "f:m,n,3", "f:1,n,4")
