"""The namespace's inspection functions."""

from __future__ import annotations

from typing import Any

from .. import _C, _connection
from ._dtypes import dtypes_of

__all__ = ["__array_namespace_info__"]


def _check_device(device: Any) -> None:
    """Raises RuntimeError if the engine has no such device."""
    if device is None:
        return
    there = [entry["device"] for entry in _connection.connection().engine()["devices"]]
    if str(_C.placed(device)) not in there:
        raise RuntimeError(f"[__array_namespace_info__] expected a device of the engine ({', '.join(there)}), got {device}")


class __array_namespace_info__:  # noqa: N801 - the standard's name
    """The standard's inspection functions."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean indexing and data-dependent sizes are supported; an array has at most 64 dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> _C.device:
        """The device of arrays that are created without an explicit device."""
        return _C.default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, _C.dtype]:
        """The default dtypes of floating-point, complex and integer arrays and indices; the same on every device."""
        _check_device(device)
        floating = _C.default_dtype()
        complex_ = _C.complex128 if floating is _C.float64 else _C.complex64
        return {"real floating": floating, "complex floating": complex_, "integral": _C.int64, "indexing": _C.int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, _C.dtype]:
        """A dict from name to dtype for one kind, several kinds, or all kinds (None); the same on every device."""
        _check_device(device)
        return dict(dtypes_of(kind))

    def devices(self) -> list[_C.device]:
        """The engine's devices."""
        return [_C.device(entry["device"]) for entry in _connection.connection().engine()["devices"]]
