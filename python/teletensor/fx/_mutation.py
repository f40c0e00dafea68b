"""Names of functions that change their arguments."""

from __future__ import annotations


def _mutates(name: str) -> bool:
    """Whether a function or method of this name changes its first argument: add_, but not __add__."""
    return name.endswith("_") and not name.endswith("__") or name in _INPLACE_OPERATORS


_INPLACE_OPERATORS = frozenset(
    "iadd iand ifloordiv ilshift imod imul imatmul ior ipow irshift isub itruediv ixor setitem __setitem__ delitem".split()
)
