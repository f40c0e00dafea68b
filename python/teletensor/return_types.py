"""torch.return_types: the types of named results, for isinstance() and for printing. They are tuples.

The types of the engine's operators are created with the first result, by a call with a tensor of one element; those of
functions that are written in Python are registered by ``_named_results.printed_as``.
"""

from __future__ import annotations

from typing import Any

from . import _C
from ._named_results import KINDS
from ._ops import math, native  # noqa: F401 - register their types
from .linalg import _results, _roots  # noqa: F401 - the same

# Arguments after the tensor in a call that returns the type.
_CALLS: dict[str, tuple[Any, ...]] = {
    "aminmax": (), "cummax": (0,), "cummin": (0,), "frexp": (), "kthvalue": (1, 0), "max": (0,), "median": (0,), "min": (0,), "mode": (0,),
    "nanmedian": (0,), "sort": (0,), "topk": (1,),
}  # fmt: skip
_NAMES = [*_CALLS, *KINDS]
__all__ = sorted({name + suffix for name in _NAMES for suffix in ("", "_out")} - {"histogramdd_out"})
all_return_types: list[type] = []  # those that were used


def _created(name: str, is_out: bool) -> type:
    if name in KINDS:
        return KINDS[name].into if is_out else KINDS[name]
    function, x = getattr(_C.torch, name), _C.torch.zeros([1])
    results = function(x, *_CALLS[name])
    return type(function(x, *_CALLS[name], out=tuple(results)) if is_out else results)


def __getattr__(name: str) -> type:
    """The type of a function's results, or of those in ``out=``."""
    if name not in __all__:
        raise AttributeError(f"module 'torch.return_types' has no attribute {name!r}")
    kind = globals()[name] = _created(name.removesuffix("_out"), name.endswith("_out"))
    all_return_types.append(kind)
    return kind


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
