"""Further modules with arguments, for either package: layers, functions and calls with several arguments and results."""

from __future__ import annotations

from types import ModuleType
from typing import Any


def layers(torch: ModuleType) -> dict[str, tuple[Any, tuple]]:
    """Modules by name, with their arguments."""
    nn, F = torch.nn, torch.nn.functional

    class Of(nn.Module):
        def __init__(self, function: Any) -> None:
            super().__init__()
            self.function = function

        def forward(self, *args: Any) -> Any:
            return self.function(*args)

    def of(function: Any) -> Any:
        return Of(function)

    x, y, image, line = torch.randn(4, 6), torch.randn(4, 6), torch.randn(2, 4, 8, 8), torch.randn(2, 4, 9)
    volume, ids, positive = torch.randn(1, 2, 4, 4, 4), torch.tensor([[1, 2, 0], [3, 4, 2]]), torch.rand(4, 6) + 0.5
    heads = torch.randn(2, 3, 5, 4)
    return {
        "linear": (nn.Linear(6, 3), (x,)),
        "bilinear": (nn.Bilinear(6, 6, 3), (x, y)),
        "conv1d": (nn.Conv1d(4, 3, 3, padding=1), (line,)),
        "conv2d_groups": (nn.Conv2d(4, 8, 3, stride=2, groups=2), (image,)),
        "conv2d_dilated": (nn.Conv2d(4, 2, 3, dilation=2, bias=False), (image,)),
        "conv3d": (nn.Conv3d(2, 3, 2), (volume,)),
        "conv_transpose1d": (nn.ConvTranspose1d(4, 2, 3, stride=2, output_padding=1), (line,)),
        "batch_norm1d_eval": (nn.BatchNorm1d(6).eval(), (x,)),
        "batch_norm2d_train": (nn.BatchNorm2d(4), (image,)),
        "instance_norm": (nn.InstanceNorm2d(4), (image,)),
        "layer_norm": (nn.LayerNorm(6), (x,)),
        "rms_norm": (nn.RMSNorm(6), (x,)),
        "local_response_norm": (nn.LocalResponseNorm(2), (image,)),
        "max_pool1d": (nn.MaxPool1d(2), (line,)),
        "max_pool2d_indices": (nn.MaxPool2d(2, return_indices=True), (image,)),
        "avg_pool3d": (nn.AvgPool3d(2), (volume,)),
        "adaptive_max_pool": (nn.AdaptiveMaxPool2d(3), (image,)),
        "lp_pool": (nn.LPPool2d(2, 2), (image,)),
        "pixel_shuffle": (nn.PixelShuffle(2), (image,)),
        "upsample_nearest": (nn.Upsample(scale_factor=2), (image,)),
        "upsample_bilinear": (nn.Upsample(size=(5, 6), mode="bilinear"), (image,)),
        "pad_reflect": (nn.ReflectionPad2d(1), (image,)),
        "pad_constant": (of(lambda x: F.pad(x, (1, 2), value=3.0)), (x,)),
        "embedding_bag": (nn.EmbeddingBag(10, 3, mode="sum"), (ids,)),
        "rnn": (nn.RNN(6, 5, batch_first=True), (torch.randn(2, 3, 6),)),
        "gru_cell": (nn.GRUCell(6, 5), (x, torch.randn(4, 5))),
        "bidirectional_lstm": (nn.LSTM(6, 5, num_layers=2, bidirectional=True), (torch.randn(3, 2, 6),)),
        "prelu": (nn.PReLU(6), (x,)),
        "glu": (nn.GLU(), (x,)),
        "activations": (of(lambda x: (F.elu(x), F.selu(x), F.softplus(x), F.mish(x), F.hardswish(x), F.hardtanh(x))), (x,)),
        "gelu_tanh": (of(lambda x: F.gelu(x, approximate="tanh")), (x,)),
        "sigmoid_chain": (of(lambda x: torch.sigmoid(x).logit().tanh().log1p()), (positive,)),
        "attention_masked": (of(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True)), (heads,)),
        "softmax_family": (of(lambda x: (x.softmax(0), x.log_softmax(1), F.softmin(x, 1))), (x,)),
        "losses": (of(lambda x, y: (F.l1_loss(x, y), F.smooth_l1_loss(x, y), F.huber_loss(x, y, reduction="sum"))), (x, y)),
        "bce": (of(lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid())), (x, y)),
        "kl_div": (of(lambda x, y: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean")), (x, y)),
        "einsum": (of(lambda a, b: torch.einsum("bij,bkj->bik", a, b)), (torch.randn(2, 3, 4), torch.randn(2, 5, 4))),
        "matmuls": (of(lambda a, b: (a @ b.t(), torch.baddbmm(a[None], a[None], torch.ones(1, 6, 6)), torch.mv(a, b[0]))), (x, y)),
        "comparisons": (of(lambda a, b: (a > b, a.eq(b), torch.maximum(a, b), torch.isfinite(a), (a > 0) & (b < 0))), (x, y)),
        "integers": (of(lambda i: (i // 2, i % 3, i << 1, i.float() / 2, i.bitwise_and(1), i.cumsum(1))), (ids,)),
        "rounding": (of(lambda x: (x.round(), x.floor(), x.ceil(), x.trunc(), x.frac(), x.sign())), (x,)),
        "shapes": (of(lambda x: (x.view(2, 12), x.t().reshape(-1), x[:, None].expand(4, 2, 6), x.flatten().unflatten(0, (3, 8)))), (x,)),
        "permutations": (of(lambda x: (x.permute(3, 0, 2, 1), x.transpose(1, 2), x.movedim(0, -1), x.flip(1), x.roll(1, 2))), (image,)),
        "gather_scatter": (of(lambda x, i: (x.gather(1, i), x.scatter(1, i, 0.5), x.index_select(0, i[0]))), (torch.randn(5, 5), ids)),
        "index_put": (of(lambda x, i: x.index_put((i,), torch.ones(3, 6))), (x, torch.tensor([0, 2, 1]))),
        "sorting": (of(lambda x: (x.sort(1), x.topk(2, 1), x.argsort(0), x.median(1))), (x,)),
        "statistics": (of(lambda x: (x.std(0), torch.var_mean(x, 1), x.prod(1), x.all(1), x.any(), x.min(1), x.argmin())), (x,)),
        "norms": (of(lambda x: (x.norm(), torch.linalg.vector_norm(x, 3, 1), F.normalize(x), F.cosine_similarity(x, x + 1))), (x,)),
        "triangles": (of(lambda x: (x.tril(), x.triu(1), x.diagonal(), torch.eye(4) @ x)), (x,)),
        "creation": (of(lambda x: x + torch.arange(6) + torch.zeros(4, 1) + torch.full((6,), 2.0) + torch.linspace(0, 1, 6)), (x,)),
        "types": (of(lambda x: (x.half().float(), x.to(torch.float64), x.int(), x.bool(), x.long().float())), (x,)),
        "splitting": (of(lambda x: (*x.split([1, 3]), *x.unbind(1)[:2], *torch.tensor_split(x, 2, 1))), (x,)),
        "one_hot": (of(lambda i: F.one_hot(i, 5).float()), (ids,)),
        "where_masks": (of(lambda x: (x.masked_fill(x > 0, -1), torch.where(x > 0, x, x.new_zeros(())), x.clamp_min(0))), (x,)),
        "powers": (of(lambda x: (x.pow(2.5), 2**x, x.rsqrt(), x.reciprocal(), x.exp2(), x.expm1(), torch.hypot(x, x))), (positive,)),
        "trigonometry": (of(lambda x: (x.sin(), x.cos(), x.tan(), x.atan(), torch.atan2(x, x + 1), x.sinh(), x.erf())), (positive,)),
        "unfold": (of(lambda x: (F.unfold(x, 3), x.unfold(2, 3, 2))), (image,)),
        "grid_sample": (of(lambda x, g: F.grid_sample(x, g, align_corners=False)), (image, torch.rand(2, 3, 3, 2) * 2 - 1)),
        "decoder": (nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (torch.randn(2, 3, 8), torch.randn(2, 4, 8))),
        "dropout_eval": (nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5), nn.AlphaDropout(0.2)).eval(), (x,)),
        "residual": (of(lambda x: x + x.relu() * 0.5 - x.neg().exp().mean(1, keepdim=True)), (x,)),
        "complex_numbers": (of(lambda x: torch.view_as_real(torch.fft.rfft(x))), (x,)),
        "repeat": (of(lambda x: (x.repeat(2, 1), x.repeat_interleave(2, 1), x.tile(2), torch.cartesian_prod(x[0], x[1]))), (x,)),
    }  # fmt: skip
