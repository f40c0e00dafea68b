"""torch.testing: comparisons for tests."""

from __future__ import annotations

from typing import Any

from .._C import Tensor, complex128, float64

_TOLERANCES = {
    "torch.float16": (1e-3, 1e-5),
    "torch.bfloat16": (1.6e-2, 1e-5),
    "torch.float32": (1.3e-6, 1e-5),
    "torch.float64": (1e-7, 1e-7),
}


def assert_close(actual, expected, *, rtol=None, atol=None, equal_nan=False, check_dtype=True, msg=None) -> None:
    """Raises AssertionError, with the largest difference, unless sizes, dtypes and values agree."""
    import numpy as np

    if not isinstance(actual, Tensor) or not isinstance(expected, Tensor):
        if type(actual) is not type(expected) and isinstance(actual, (list, tuple)):
            raise AssertionError(f"expected two values of the same type, got {type(actual).__name__} and {type(expected).__name__}")
        if isinstance(actual, (list, tuple)):
            if len(actual) != len(expected):
                raise AssertionError(f"lengths differ: {len(actual)} and {len(expected)}")
            for a, b in zip(actual, expected):
                assert_close(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=check_dtype, msg=msg)
            return
    a = actual.detach() if isinstance(actual, Tensor) else None
    b = expected.detach() if isinstance(expected, Tensor) else None
    if a is not None and b is not None:
        if a.shape != b.shape:
            raise AssertionError(f"The values for attribute 'shape' do not match: {a.shape} != {b.shape}.")
        if check_dtype and a.dtype is not b.dtype:
            raise AssertionError(f"The values for attribute 'dtype' do not match: {a.dtype} != {b.dtype}.")
    default = _TOLERANCES.get(repr(a.dtype), (0.0, 0.0)) if a is not None else (1e-7, 1e-7)
    rtol, atol = default[0] if rtol is None else rtol, default[1] if atol is None else atol
    sides = (a if a is not None else actual, b if b is not None else expected)
    x, y = (_array(t) if isinstance(t, Tensor) else np.asarray(t) for t in sides)
    if not np.allclose(x, y, rtol, atol, equal_nan):
        worst = np.nanmax(np.abs(x - y)) if x.size else 0
        raise AssertionError(
            msg
            or f"Tensor-likes are not close!\n\nGreatest absolute difference: {worst} (up to {atol} allowed), rtol {rtol}"
        )


def _array(t: Tensor):
    return t.cpu().to(complex128 if t.is_complex() else float64).numpy()


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan: bool = True, msg: str = "") -> None:
    """The old name of assert_close; does not compare dtypes."""
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def __getattr__(name: str) -> Any:
    if name != "make_tensor":
        raise AttributeError(f"module 'teletensor.testing' has no attribute {name!r}")
    from ._creation import make_tensor

    return make_tensor
