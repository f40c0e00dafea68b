"""The decompositions by overload. Those of the variants in place and with `out=` are derived from the functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .. import _C
from .._C import Tensor
from ..ops import aten
from . import arithmetic, layout

_WITHOUT_IN_PLACE = ("addr", "clamp_max", "clamp_min", "floor_divide")  # PyTorch's table has no decomposition of addr_ and the like


def _in_place(function: Callable) -> Callable:
    return lambda self, *args, **kwargs: self.copy_(function(self, *args, **kwargs))


def _with_out(function: Callable, names: list[str]) -> Callable:
    """The variant that writes into the arguments of these names."""

    def written(target: Any, result: Any) -> Any:
        if not isinstance(target, Tensor):
            return [written(t, r) for t, r in zip(target, result, strict=True)]
        return _C.ops.assign(target.resize_(result.shape), result, out=target)

    def call(*args: Any, **kwargs: Any) -> Any:
        targets = [kwargs.pop(name) for name in names]
        if len(names) == 1:
            return written(targets[0], function(*args, **kwargs))
        return tuple(map(written, targets, function(*args, **kwargs)))

    return call


def registered() -> Iterator[tuple[Any, Callable]]:
    """The overloads that have a decomposition, with it."""
    for key, function in {**layout.DECOMPOSITIONS, **arithmetic.DECOMPOSITIONS}.items():
        name, _, only = key.partition(".")
        in_place = None if only or name in _WITHOUT_IN_PLACE else getattr(aten, f"{name}_", None)
        for packet in filter(None, (getattr(aten, name, None), in_place)):
            for overload in (getattr(packet, o) for o in packet.overloads() if only in ("", o)):
                written = [a for a in overload._schema.arguments if a.is_write]
                if written and written[0].kwarg_only:
                    yield overload, _with_out(function, [a.name for a in written])
                else:
                    yield overload, _in_place(function) if written else function
