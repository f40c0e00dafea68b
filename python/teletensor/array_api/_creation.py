"""Functions that create arrays."""

from __future__ import annotations

from typing import Any, Callable

from .. import _C, _functions
from .._C import Tensor
from .._dlpack import from_dlpack
from ._dtypes import result_type
from ._tables import with_standard_name

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid",
    "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

_torch = _C.torch


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """Converts a number, nested sequence, buffer, object with __dlpack__ or array to an array.

    Returns an array itself if its dtype and device match and no copy is requested.
    """
    if isinstance(obj, Tensor):
        if copy is False and _requires_copy(obj, dtype, device):
            raise ValueError("[asarray] conversion to another dtype or device requires a copy, but copy is False")
        return obj.to(dtype=dtype, device=device, copy=bool(copy))
    if copy is False:
        raise ValueError("[asarray] moving data to the engine requires a copy, but copy is False")
    if not hasattr(obj, "__array_interface__") and hasattr(obj, "__dlpack__"):
        return from_dlpack(obj, device=device).to(dtype=dtype)
    return _C.tensor(obj, dtype=dtype, device=device)


def _requires_copy(x: Tensor, dtype: Any, device: Any) -> bool:
    return dtype not in (None, x.dtype) or device is not None and _C.placed(device) != x.device


def _filled(name: str) -> Callable:
    function = getattr(_torch, name)

    def make(shape: int | tuple[int, ...], *, dtype: Any = None, device: Any = None) -> Tensor:
        return function(_sizes(shape), dtype=dtype, device=device)

    return with_standard_name(name, make)


def _filled_like(name: str) -> Callable:
    function = getattr(_torch, name)

    def make(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
        return function(tuple(x.shape), dtype=dtype or x.dtype, device=device or x.device)

    return with_standard_name(f"{name}_like", make)


def _sizes(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


empty, ones, zeros = map(_filled, ("empty", "ones", "zeros"))
empty_like, ones_like, zeros_like = map(_filled_like, ("empty", "ones", "zeros"))


def full(shape: int | tuple[int, ...], fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array whose elements all equal fill_value."""
    if isinstance(fill_value, Tensor):
        return fill_value.to(dtype=dtype, device=device).expand(_sizes(shape)).clone()
    return _torch.full(_sizes(shape), fill_value, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """full() with the shape of x and, by default, its dtype and device."""
    return full(tuple(x.shape), fill_value, dtype=dtype or x.dtype, device=device or x.device)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Numbers from start (default 0) to stop (excluded); empty if the step leads away from stop."""
    start, stop = (0, start) if stop is None else (start, stop)
    if dtype is None:
        dtype = _C.int64 if all(isinstance(n, int) for n in (start, stop, step)) else _C.default_dtype()
    if step != 0 and (stop - start) / step <= 0:
        return _torch.empty((0,), dtype=dtype, device=device)
    return _torch.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """num equally spaced numbers from start to stop, including stop if endpoint is set."""
    if not endpoint:
        return _torch.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]
    return _torch.linspace(start, stop, num, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """A matrix with ones on the k-th diagonal and zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    result = _torch.zeros((n_rows, n_cols), dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        result.diagonal(k).fill_(1)
    return result


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Sets the elements above the k-th diagonal to zero."""
    return _torch.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Sets the elements below the k-th diagonal to zero."""
    return _torch.triu(x, k)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Coordinate grids of one-dimensional arrays."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid(): indexing must be 'xy' or 'ij', got {indexing!r}")
    result_type(*arrays)  # raises TypeError if the dtypes do not promote
    return list(_functions.meshgrid(*arrays, indexing=indexing)) if arrays else []
