"""Modules whose operations FlopCounterMode counts, written for either package: record_flops.py runs PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def models(torch: Any) -> dict[str, Callable[[], tuple[Any, Any]]]:
    """By name, a function that returns a module and its input."""
    nn, f = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8, bias=False)

        def forward(self, x):
            parts = [t.unflatten(-1, (2, 4)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1)]
            return self.out(f.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).flatten(2))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.norm = Attention(), nn.LayerNorm(8)
            self.feed_forward = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

        def forward(self, x):
            x = x + self.attention(self.norm(x))
            return x + self.feed_forward(x)

    class Convolutions(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 2, 3, stride=2)
            self.up, self.last = nn.ConvTranspose2d(2, 3, 2), nn.Linear(48, 5)

        def forward(self, x):
            return self.last(self.up(self.second(self.first(x).relu())).flatten(1))

    class Products(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4, 4))

        def forward(self, x):
            y = torch.bmm(x, x.transpose(1, 2)) @ x
            return y[0] @ self.weight

    def perceptron():
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 2), nn.Tanh()))

    return {
        "perceptron": lambda: (perceptron(), torch.ones(3, 4)),
        "perceptron, gradient of the input": lambda: (perceptron(), torch.ones(3, 4, requires_grad=True)),
        "convolutions": lambda: (Convolutions(), torch.ones(2, 3, 8, 8)),
        "convolutions, gradient of the input": lambda: (Convolutions(), torch.ones(2, 3, 8, 8, requires_grad=True)),
        "block": lambda: (Block(), torch.ones(2, 5, 8, requires_grad=True)),
        "products": lambda: (Products(), torch.ones(2, 3, 4, requires_grad=True)),
    }


def counts(mode: type, module: Any, x: Any) -> dict[str, dict[str, int]]:
    """The numbers of a forward and a backward pass, by module and operator."""
    with mode(display=False) as counter:
        module(x).sum().backward()
    return {name: {str(op): n for op, n in numbers.items()} for name, numbers in counter.get_flop_counts().items()}
