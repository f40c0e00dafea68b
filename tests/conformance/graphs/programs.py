"""Modules with arguments, for either package."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from tests.conformance.graphs.layers import layers
from tests.python.export.modules import cases


def programs(torch: ModuleType) -> dict[str, tuple[Any, tuple]]:
    """Modules by name, with their arguments."""
    nn, F = torch.nn, torch.nn.functional
    torch.manual_seed(0)

    class Loss(nn.Module):
        def __init__(self, function: Any) -> None:
            super().__init__()
            self.function = function

        def forward(self, x: Any, y: Any) -> Any:
            return self.function(x, y)

    class Of(nn.Module):
        def __init__(self, function: Any) -> None:
            super().__init__()
            self.function = function

        def forward(self, x: Any) -> Any:
            return self.function(x)

    found = {name: (case.module, case.arguments(4)) for name, case in cases(torch).items()}
    x, image = torch.randn(4, 6), torch.randn(2, 3, 8, 8)
    found |= {
        "cross_entropy": (Loss(F.cross_entropy), (torch.randn(4, 3), torch.tensor([0, 1, 2, 0]))),
        "mse": (Loss(F.mse_loss), (x, torch.randn(4, 6))),
        "embedding": (nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2)), (torch.tensor([[1, 2], [3, 4]]),)),
        "group_norm": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.SiLU()), (image,)),
        "transposed": (nn.Sequential(nn.ConvTranspose2d(3, 2, 2, stride=2), nn.LeakyReLU(0.1)), (image,)),
        "pooling": (nn.Sequential(nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten()), (image,)),
        "lstm": (nn.LSTM(6, 5, batch_first=True), (torch.randn(2, 3, 6),)),
        "gru": (nn.GRU(6, 5), (torch.randn(2, 3, 6),)),
        "multihead": (nn.MultiheadAttention(6, 2, batch_first=True), (torch.randn(2, 3, 6),) * 3),
        "indexing": (Of(lambda x: (x[:, 1:3], x[0], x[..., None], x[x.argmax(0)])), (x,)),
        "reductions": (Of(lambda x: (x.mean(), x.var(1), x.amax(0), x.logsumexp(1), x.norm(dim=1), x.cumsum(1))), (x,)),
        "joining": (Of(lambda x: torch.cat([x, torch.stack([x[0], x[1]])]).chunk(2, 1)), (x,)),
        "elementwise": (Of(lambda x: torch.where(x > 0, x.exp(), 1 - x.abs().sqrt()).clamp(0, 3) ** 2 / 2), (x,)),
    }  # fmt: skip
    return found | layers(torch)
