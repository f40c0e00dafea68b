"""torch.onnx.symbolic_helper: importable; functions other than decorators raise NotImplementedError."""

from __future__ import annotations

from collections.abc import Callable

from ._symbolic import symbolic_functions

__all__ = []

__getattr__ = symbolic_functions(__name__)


def parse_args(*arg_types: str) -> Callable:
    """Returns a decorator that returns its function: nothing is exported, so it is never called."""
    return lambda function: function


def quantized_args(
    *arg_q_descriptors: bool, scale: float | None = None, zero_point: int | None = None, quantize_output: bool = True
) -> Callable:
    """Returns a decorator that returns its function, like parse_args."""
    return lambda function: function
