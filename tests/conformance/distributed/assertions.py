"""TestCase with the assertEqual of PyTorch's tests: tensors and numbers are compared with tolerances."""

from __future__ import annotations

import unittest
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import teletensor as torch

# As in torch.testing: relative and absolute tolerance by dtype.
_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip
_NUMBERS = (int, float, complex, bool, np.number)


class TestCase(unittest.TestCase):
    """unittest's class with PyTorch's rules of equality: types, dtypes and shapes must agree, devices need not."""

    def assertEqual(self, x: Any, y: Any, msg: Any = None, *, atol=None, rtol=None, exact_dtype: bool = True, **_: Any) -> None:
        """Fails if the values differ."""
        why = difference(x, y, atol, rtol, exact_dtype)
        if why:
            self.fail(f"{why}{f': {msg}' if isinstance(msg, str) else ''}")

    def assertNotEqual(self, x: Any, y: Any, msg: Any = None, *, atol=None, rtol=None, **_: Any) -> None:
        """Fails if the values are equal."""
        if not difference(x, y, atol, rtol, exact_dtype=True):
            self.fail(f"expected different values, got {x!r} twice")

    def assertGreaterAlmostEqual(self, first: float, second: float, places: int = 7, msg: Any = None) -> None:
        """Fails if the first number is less than the second by more than rounding."""
        if first < second:
            self.assertAlmostEqual(first, second, places, msg)


def difference(x: Any, y: Any, atol=None, rtol=None, exact_dtype: bool = True) -> str:
    """How two values differ; empty if they are equal."""
    if isinstance(x, torch.Tensor) or isinstance(y, torch.Tensor):
        return _of_tensors(x, y, atol, rtol, exact_dtype)
    if isinstance(x, _NUMBERS) and isinstance(y, _NUMBERS):
        relative, absolute = (rtol or 0, atol or 0) if atol is not None or rtol is not None else (1e-7, 1e-7)
        if all(isinstance(v, (int, np.integer)) for v in (x, y)) and atol is None and rtol is None:
            relative = absolute = 0
        return "" if np.isclose(x, y, relative, absolute, equal_nan=True) else f"{x!r} is not {y!r}"
    if isinstance(x, (str, bytes)) or isinstance(y, (str, bytes)):
        return "" if x == y else f"{x!r} is not {y!r}"
    if isinstance(x, Mapping) and isinstance(y, Mapping):
        if set(x) != set(y):
            return f"keys {sorted(map(str, x))} are not {sorted(map(str, y))}"
        return next((f"[{k!r}]: {why}" for k in x if (why := difference(x[k], y[k], atol, rtol, exact_dtype))), "")
    if isinstance(x, Sequence) and isinstance(y, Sequence):
        if len(x) != len(y):
            return f"{len(x)} elements are not {len(y)}"
        pairs = enumerate(zip(x, y, strict=True))
        return next((f"[{i}]: {why}" for i, (a, b) in pairs if (why := difference(a, b, atol, rtol, exact_dtype))), "")
    return "" if x == y else f"{x!r} is not {y!r}"


def _of_tensors(x: Any, y: Any, atol, rtol, exact_dtype: bool) -> str:
    if not (isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)):
        number, tensor = (x, y) if isinstance(y, torch.Tensor) else (y, x)
        if not isinstance(number, (*_NUMBERS, list, tuple, np.ndarray)):
            return f"{type(x).__name__} is not {type(y).__name__}"
        number = torch.as_tensor(number, dtype=tensor.dtype, device=tensor.device)
        x, y, exact_dtype = number, tensor, False
    if x.layout != y.layout:
        return f"layout {x.layout} is not {y.layout}"
    if x.layout != torch.strided:
        x, y = x.to_dense(), y.to_dense()
    if x.shape != y.shape:
        return f"shape {tuple(x.shape)} is not {tuple(y.shape)}"
    if exact_dtype and x.dtype != y.dtype:
        return f"{x.dtype} is not {y.dtype}"
    names = [str(t.dtype).rpartition(".")[2] for t in (x, y)]
    relative, absolute = (max(pair) for pair in zip(*(_TOLERANCES.get(n, (0, 0)) for n in names), strict=True))
    relative, absolute = (relative if rtol is None else rtol), (absolute if atol is None else atol)
    a, b = (_array(t) for t in (x, y))
    with np.errstate(all="ignore"):
        differs = ~np.isclose(a, b, relative, absolute, equal_nan=True)
    if not differs.any():
        return ""
    where = tuple(int(i) for i in np.argwhere(differs)[0])
    return f"{differs.sum()} of {differs.size} elements differ, such as {a[where]!r} and {b[where]!r} at {where}"


def _array(t: torch.Tensor) -> np.ndarray:
    t = t.detach().cpu()
    return np.atleast_1d((t.float() if t.dtype == torch.bfloat16 else t).numpy())
