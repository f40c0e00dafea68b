"""Calls of the engine's operators by name, with a value for each parameter."""

from __future__ import annotations

import functools
from typing import Any

from .. import _C
from .._C import Tensor


@functools.cache
def parameters(name: str) -> tuple[list[str], int]:
    """The names of an operator's parameters, and how many of them are positional."""
    declared = _C._declaration(name)[0]
    return [p[0] for p in declared], sum(not keyword_only for _, keyword_only, *_ in declared)


@functools.cache
def is_pointwise(name: str) -> bool:
    """Whether the operator is declared as pointwise."""
    return _C._declaration(name)[1]


def call(name: str, arguments: list) -> Any:
    """Calls an operator of the engine with a value for each of its parameters."""
    names, count = parameters(name)
    return getattr(_C.ops, name)(*arguments[:count], **dict(zip(names[count:], arguments[count:])))


def write(name: str, target: Tensor, result: Tensor) -> None:
    """Writes the result of an operator that was called in place, or with ``out=``."""
    if not _C.can_cast(result.dtype, target.dtype):
        raise RuntimeError(f"result type {result.dtype} can't be cast to the desired output type {target.dtype}")
    if result.shape != target.shape:
        raise RuntimeError(f"[{name}] expected a result of sizes {list(target.shape)}, got {list(result.shape)}")
    target.copy_(result)
