"""Reductions by number, and from their old flags; torch.nn._reduction's names."""

from __future__ import annotations

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of a reduction."""
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(size_average, reduce, emit_warning: bool = True) -> str:
    """The reduction that size_average and reduce mean."""
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def legacy_get_enum(size_average, reduce, emit_warning: bool = True) -> int:
    """Its number."""
    return get_enum(legacy_get_string(size_average, reduce))
