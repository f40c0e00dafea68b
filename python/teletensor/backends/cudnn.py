"""torch.backends.cudnn: the precision of float32 convolutions on GPUs, and settings without effect. The engine uses cuDNN
where it is installed, deterministically.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from .. import _connection
from ._flags import temporary_settings

enabled = False
benchmark = False
benchmark_limit = None
deterministic = True
_allows_tf32, _precision = True, "none"


class _Settings(ModuleType):
    """The module, with settings of the engine."""

    @property
    def allow_tf32(self) -> bool:
        """Whether GPUs may compute float32 convolutions in TF32. Initially True, as in PyTorch."""
        return _allows_tf32

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        global _allows_tf32
        allowed = bool(allowed)
        if allowed != _allows_tf32:
            _connection.configure_sessions("set_convolution_tf32", allowed)
        _allows_tf32 = allowed

    @property
    def fp32_precision(self) -> str:
        """The value that was set last: "tf32", "ieee", or "none", which leaves the precision to allow_tf32."""
        return _precision

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        global _precision
        if precision not in ("tf32", "ieee", "none"):
            raise RuntimeError(f"[cudnn] expected fp32_precision to be tf32, ieee or none, got {precision!r}")
        if precision != _precision:
            self.allow_tf32 = precision != "ieee"
        _precision = precision


sys.modules[__name__].__class__ = _Settings

flags = temporary_settings(
    __name__, ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32", "fp32_precision")
)


def set_flags(
    _enabled: bool | None = None, _benchmark: bool | None = None, _benchmark_limit: int | None = None, _deterministic: bool | None = None,
    _allow_tf32: bool | None = None, _fp32_precision: str = "none",
) -> tuple:  # fmt: skip
    """Sets the variables of this module that are not None; returns their previous values."""
    given = {
        "enabled": _enabled, "benchmark": _benchmark, "benchmark_limit": _benchmark_limit, "deterministic": _deterministic,
        "allow_tf32": _allow_tf32, "fp32_precision": _fp32_precision,
    }  # fmt: skip
    settings = sys.modules[__name__]
    previous = tuple(getattr(settings, name) for name in given)
    for name, value in given.items():
        if value is not None:
            setattr(settings, name, value)
    return previous


def is_available() -> bool:
    """Whether the library is available to the client: always False."""
    return False


def version() -> None:
    """None: the client does not use cuDNN."""


def is_acceptable(tensor: Any) -> bool:
    """Whether the client would use cuDNN for a tensor: always False."""
    return False
