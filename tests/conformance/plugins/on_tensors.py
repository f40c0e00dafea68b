"""A pytest plugin: opt_einsum's tests of contract() contract our tensors, of the NumPy arrays that they draw.

But not into an `out`, which opt_einsum's PyTorch backend does not know.
"""

from __future__ import annotations

from typing import Any

import opt_einsum.testing

import teletensor

_of_arrays = opt_einsum.testing.build_views
_on_tensors = False


def pytest_runtest_setup(item: Any) -> None:
    """Decides for the test that comes."""
    global _on_tensors
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    _on_tensors = item.module.__name__.endswith("test_contract") and not parameters.get("out_spec")


def build_views(string: str, dimension_dict: Any = None, array_function: Any = None) -> tuple:
    """opt_einsum's own, as tensors where that is wanted."""
    views = _of_arrays(string, dimension_dict, array_function)
    return tuple(teletensor.tensor(v, dtype=teletensor.float64) for v in views) if _on_tensors else views


opt_einsum.testing.build_views = build_views
