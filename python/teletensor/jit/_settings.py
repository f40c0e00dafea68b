"""TorchScript's settings, which have no effect: annotated code runs as Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Returns the strategy that applies, which is empty."""
    return []


_onednn_fusion = False


def enable_onednn_fusion(enabled: bool) -> None:
    """Sets the result of onednn_fusion_enabled()."""
    global _onednn_fusion
    _onednn_fusion = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """The value set by enable_onednn_fusion."""
    return _onednn_fusion


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A context without effect."""
    yield


class strict_fusion(nullcontext):  # noqa: N801 - PyTorch's name
    """A context without effect."""

    def __init__(self) -> None:
        super().__init__()


def set_module(obj: Any, mod: str) -> None:
    """Sets the object's __module__."""
    obj.__module__ = mod


set_module(strict_fusion, "teletensor.jit")
