"""Functions whose joint graphs are divided here and by PyTorch, for example arguments: pairs of sizes and whether they require grad."""

from __future__ import annotations

from types import ModuleType
from typing import Any


def cases(torch: ModuleType) -> dict[str, tuple[Any, list[tuple[tuple[int, ...], bool]]]]:
    """Functions by name, and their arguments."""
    F = torch.nn.functional
    weight, data = True, False
    return {
        "sin": (lambda x: x.sin(), [((3, 4), weight)]),
        "sin_cos": (lambda x: x.sin().cos().exp(), [((3, 4), weight)]),
        "mul": (lambda x, y: x * y, [((3, 4), weight), ((3, 4), weight)]),
        "mul_data": (lambda x, y: x * y, [((3, 4), weight), ((3, 4), data)]),
        "mul_chain": (lambda x, y: (x * y).sigmoid() * x, [((3, 4), weight), ((3, 4), weight)]),
        "mm": (lambda x, w: x @ w, [((3, 4), data), ((4, 5), weight)]),
        "mm_relu_mm": (lambda x, w, v: (x @ w).relu() @ v, [((3, 4), data), ((4, 5), weight), ((5, 2), weight)]),
        "mm_sigmoid_mm": (lambda x, w, v: (x @ w).sigmoid() @ v, [((3, 4), data), ((4, 5), weight), ((5, 2), weight)]),
        "linear": (lambda x, w, b: F.linear(x, w, b), [((3, 4), data), ((5, 4), weight), ((5,), weight)]),
        "linear_tanh": (lambda x, w, b: F.linear(x, w, b).tanh(), [((3, 4), data), ((5, 4), weight), ((5,), weight)]),
        "linear_gelu": (lambda x, w, b: F.gelu(F.linear(x, w, b)), [((3, 4), data), ((5, 4), weight), ((5,), weight)]),
        "linear_silu": (lambda x, w, b: F.silu(F.linear(x, w, b)), [((3, 4), data), ((5, 4), weight), ((5,), weight)]),
        "sum": (lambda x: x.sum(), [((3, 4), weight)]),
        "square_sum": (lambda x: (x * x).sum(-1), [((3, 4), weight)]),
        "exp_sum": (lambda x: x.exp().sum(0), [((3, 4), weight)]),
        "softmax": (lambda x: torch.softmax(x, -1), [((3, 4), weight)]),
        "log_softmax": (lambda x: torch.log_softmax(x, -1), [((3, 4), weight)]),
        "division": (lambda x, y: x / y, [((3, 4), weight), ((3, 4), weight)]),
        "pow": (lambda x: x**3, [((3, 4), weight)]),
        "sqrt": (lambda x: (x * x + 1).sqrt(), [((3, 4), weight)]),
        "clamp": (lambda x: x.clamp(-1, 1) * 2, [((3, 4), weight)]),
        "where": (lambda x, y: torch.where(x > 0, x, y), [((3, 4), weight), ((3, 4), weight)]),
        "cat": (lambda x, y: torch.cat([x.sin(), y]), [((3, 4), weight), ((2, 4), weight)]),
        "broadcast": (lambda x, y: x * y + y, [((3, 4), weight), ((4,), weight)]),
        "transpose": (lambda x, w: x.t().sin() @ w, [((4, 3), weight), ((4, 5), weight)]),
        "bmm": (lambda x, y: torch.bmm(x, y).relu(), [((2, 3, 4), weight), ((2, 4, 5), weight)]),
        "slice": (lambda x: x[:, 1:].exp(), [((3, 4), weight)]),
        "two_results": (lambda x, y: (x * y, (x + y).cos()), [((3, 4), weight), ((3, 4), weight)]),
    }  # fmt: skip
