"""Functions of torch.func that have no effect here."""

from __future__ import annotations

from typing import Any, Callable

from .._C import Tensor


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Returns the function: its results do not depend on whether its operators change intermediate tensors in place."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are: "
            "'mutations' and 'mutations_and_views'"
        )
    return func


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Returns the tensor: vmap and grad call functions with ordinary tensors."""
    if not isinstance(recurse, bool):
        raise TypeError(f"debug_unwrap: expected recurse to be a bool, got {type(recurse).__name__}")
    return tensor
