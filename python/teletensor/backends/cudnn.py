"""torch.backends.cudnn: the precision of float32 convolutions on GPUs, and settings without effect. The engine uses cuDNN
where it is installed, deterministically.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from ._flags import temporary_settings
from ._precision import Part, allow_convolutions_in_tf32, allows_convolutions_in_tf32, of_module

enabled = False
benchmark = False
benchmark_limit = None
deterministic = True
conv, rnn = Part("cuda.conv"), Part("cuda.rnn")


class _Settings(ModuleType):
    """The module, with settings of the engine."""

    fp32_precision = of_module("cuda", "The precision of float32 on GPUs, where matmul, conv and rnn leave it to this setting.")

    @property
    def allow_tf32(self) -> bool:
        """Whether GPUs may compute float32 convolutions in TF32. Initially True, as in PyTorch."""
        return allows_convolutions_in_tf32()

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        allow_convolutions_in_tf32(bool(allowed))


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
