"""einops: rearrangements, reductions and layers."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce

from .tools import backward, fill, randn, train


def functions_forward():
    x = randn(2, 3, 4, 6)
    packed, sizes = pack([x, randn(2, 5, 6)], "b * c")
    return [
        rearrange(x, "b c (h k) w -> b (h w) (c k)", k=2),
        reduce(x, "b c h w -> b c", "max"),
        reduce(x, "b c h w -> h", "mean"),
        repeat(x, "b c h w -> b c (h 2) w"),
        einsum(x, randn(3, 6, seed=1), "b c h w, c w -> b h"),
        packed,
        *unpack(packed, sizes, "b * c"),
    ]


def functions_backward():
    x = randn(2, 3, 4, 6).requires_grad_()
    reduce(rearrange(x, "b c (h k) w -> (b k) c h w", k=2) ** 2, "b c h w -> c", "mean").sin().sum().backward()
    return x.grad


def _model():
    return fill(
        torch.nn.Sequential(
            torch.nn.Conv2d(3, 6, 3, padding=1), Reduce("b c (h 2) (w 2) -> b c h w", "max"), torch.nn.ReLU(),
            Rearrange("b c h w -> b (h w) c"), EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=6, d=4),
            Reduce("b t d -> b d", "mean"),
        )
    )  # fmt: skip


def layers_forward():
    return _model()(randn(2, 3, 8, 8))


def layers_backward():
    model = _model()
    return backward(model, model(randn(2, 3, 8, 8)).square().sum())


def layers_training():
    model, x = _model(), randn(4, 3, 8, 8)
    target = torch.tensor([0, 1, 2, 3])
    return train(model, lambda: torch.nn.functional.cross_entropy(model(x), target))
