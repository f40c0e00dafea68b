"""Named results of functions that are written in Python, printed as PyTorch prints its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

_Type = TypeVar("_Type", bound=type)

KINDS: dict[str, Any] = {}  # the types by their names in torch.return_types


def printed_as(name: str) -> Callable[[_Type], _Type]:
    """A decorator of a NamedTuple, whose values are printed as those of ``torch.return_types.<name>``."""

    def decorate(kind: _Type) -> _Type:
        kind.__repr__ = _printer(name)
        methods = {"__repr__": _printer(f"{name}_out"), "__reduce__": lambda self: (kind, tuple(self)), "__slots__": ()}
        kind.into = type(f"{kind.__name__}Out", (kind,), methods)
        KINDS[name] = kind
        return kind

    return decorate


def in_same_type(results: tuple, targets: Sequence[Any]) -> tuple:
    """The tensors of ``out=``, with the names of the results that were written to them."""
    return getattr(type(results), "into", type(results))._make(targets)


def _printer(name: str) -> Callable[[Any], str]:
    def __repr__(self: Any) -> str:  # noqa: N807 - becomes the method
        fields = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self))
        return f"torch.return_types.{name}(\n{fields})"

    return __repr__
