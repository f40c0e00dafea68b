"""torch.backends.cudnn: settings without effect. The engine uses cuDNN where it is installed, deterministically."""

from __future__ import annotations

from typing import Any

from ._flags import temporary_settings

enabled = False
benchmark = False
benchmark_limit = None
deterministic = True
allow_tf32 = False
fp32_precision = "none"

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
    previous = tuple(globals()[name] for name in given)
    globals().update({name: value for name, value in given.items() if value is not None})
    return previous


def is_available() -> bool:
    """Whether the library is available to the client: always False."""
    return False


def version() -> None:
    """None: the client does not use cuDNN."""


def is_acceptable(tensor: Any) -> bool:
    """Whether the client would use cuDNN for a tensor: always False."""
    return False
