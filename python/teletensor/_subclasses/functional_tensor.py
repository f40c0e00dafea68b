"""torch._subclasses.functional_tensor: tensors whose writes torch.func.functionalize replaces."""

from __future__ import annotations

from typing import Any

from ..func._functionalized import Functional as FunctionalTensor

__all__ = ["FunctionalTensor", "mb_unwrap_functional_tensor"]


def mb_unwrap_functional_tensor(tensor: Any) -> Any:
    """The tensor inside a FunctionalTensor; another value as it is."""
    return tensor._value if isinstance(tensor, FunctionalTensor) else tensor
