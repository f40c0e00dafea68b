"""Functions that PyTorch removed: they raise RuntimeError and name their replacement, as PyTorch's do."""

from __future__ import annotations

from typing import Any, Callable


def _removed(name: str, replacement: str) -> Callable:
    def function(*args: Any, **kwargs: Any):
        raise RuntimeError(
            f"This function was deprecated since version 1.9 and is now removed. Use `torch.linalg.{replacement}` instead of torch.{name}."
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Raises RuntimeError, as PyTorch does: use torch.linalg.{replacement}."
    return function


eig, lstsq, matrix_rank, solve, symeig = (
    _removed(name, replacement)
    for name, replacement in (("eig", "eig"), ("lstsq", "lstsq"), ("matrix_rank", "matrix_rank"), ("solve", "solve"), ("symeig", "eigh"))
)
