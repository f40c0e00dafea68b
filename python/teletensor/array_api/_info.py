"""What the namespace says of itself."""

from __future__ import annotations

from typing import Any

from .. import _C, _connection
from ._dtypes import dtypes_of

__all__ = ["__array_namespace_info__"]


class __array_namespace_info__:  # noqa: N801 - the standard's name
    """The standard's inspection functions."""

    def capabilities(self) -> dict[str, Any]:
        """Masks may index, sizes may depend on data, and an array has at most 64 dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> _C.device:
        """What arrays are made on where nothing says."""
        return _C.default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, _C.dtype]:
        """What Python's numbers become, and indices are; on every device the same."""
        floating = _C.default_dtype()
        complex_ = _C.complex128 if floating is _C.float64 else _C.complex64
        return {"real floating": floating, "complex floating": complex_, "integral": _C.int64, "indexing": _C.int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, _C.dtype]:
        """The dtypes of a kind, of several, or all, by name; on every device the same."""
        return dict(dtypes_of(kind))

    def devices(self) -> list[_C.device]:
        """The engine's."""
        return [_C.device(entry["device"]) for entry in _connection.connection().engine()["devices"]]
