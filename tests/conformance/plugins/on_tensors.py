"""A pytest plugin: runs opt_einsum's tests of contract() on our tensors, made from the NumPy arrays of the tests.

Tests with `out` keep arrays, since opt_einsum's PyTorch backend does not support it.
"""

from __future__ import annotations

from typing import Any

import opt_einsum.testing

import teletensor

_of_arrays = opt_einsum.testing.build_views
_on_tensors = False


def pytest_runtest_setup(item: Any) -> None:
    """Decides whether the next test uses tensors."""
    global _on_tensors
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    _on_tensors = item.module.__name__.endswith("test_contract") and not parameters.get("out_spec")


def build_views(string: str, dimension_dict: Any = None, array_function: Any = None) -> tuple:
    """opt_einsum's function, with arrays converted to tensors if enabled."""
    views = _of_arrays(string, dimension_dict, array_function)
    return tuple(teletensor.tensor(v, dtype=teletensor.float64) for v in views) if _on_tensors else views


opt_einsum.testing.build_views = build_views
