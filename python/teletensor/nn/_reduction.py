"""Converts loss reductions from deprecated flags and to numbers; provides the names of torch.nn._reduction."""

from __future__ import annotations

import warnings

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """PyTorch's number of a reduction: 0 for "none", 1 for "mean", 2 for "sum"."""
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
    return _NUMBERS[reduction]


def legacy_get_string(size_average, reduce, emit_warning: bool = True) -> str:
    """The reduction that the deprecated flags size_average and reduce select."""
    average, reduced = size_average is None or bool(size_average), reduce is None or bool(reduce)
    reduction = ("mean" if average else "sum") if reduced else "none"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.", stacklevel=2
        )
    return reduction


def legacy_get_enum(size_average, reduce, emit_warning: bool = True) -> int:
    """The number of the reduction that the deprecated flags select."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def resolve_reduction(size_average, reduce, reduction: str) -> str:
    """The reduction of a call; the deprecated flags take precedence if given."""
    return reduction if size_average is None and reduce is None else legacy_get_string(size_average, reduce)
