"""Named results of functions that are written in Python, printed as PyTorch prints its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Type = TypeVar("_Type", bound=type)


def printed_as(name: str) -> Callable[[_Type], _Type]:
    """A decorator of a NamedTuple, whose values are printed as those of ``torch.return_types.<name>``."""

    def decorate(kind: _Type) -> _Type:
        def __repr__(self) -> str:  # noqa: N807 - becomes the method
            fields = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self))
            return f"torch.return_types.{name}(\n{fields})"

        kind.__repr__ = __repr__
        return kind

    return decorate
