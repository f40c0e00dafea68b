"""torch._guards: finds the mode of fake tensors. Names only."""

from __future__ import annotations

from typing import Any

from ._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from .overrides import _get_current_function_mode_stack
from .utils._pytree import tree_leaves

__all__ = ["active_fake_mode", "detect_fake_mode"]


def active_fake_mode() -> FakeTensorMode | None:
    """The innermost FakeTensorMode that is entered."""
    return next((mode for mode in reversed(_get_current_function_mode_stack()) if isinstance(mode, FakeTensorMode)), None)


def detect_fake_mode(inputs: Any = None) -> FakeTensorMode | None:
    """The mode that is entered, or that of a fake tensor among the inputs."""
    return active_fake_mode() or next((leaf.fake_mode for leaf in tree_leaves(inputs) if isinstance(leaf, FakeTensor)), None)
