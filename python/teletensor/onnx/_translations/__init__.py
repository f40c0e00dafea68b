"""Translations of operators to ONNX, one file per subject; load() fills the table of onnx/_registry.py."""

from __future__ import annotations

from collections.abc import Callable

from .._registry import TRANSLATIONS

_loaded: list[bool] = []


def load() -> dict[str, Callable]:
    """The table, filled by the files of this package."""
    if _loaded:
        return TRANSLATIONS
    from . import (  # noqa: F401 - they fill the table
        activations, arithmetic, attention, comparisons, convolution, creation, engine, fourier, indexing, layout, linear, losses, nodes,
        normalisation,
        padding, pooling, quantization, random, recurrent, reductions, refused, resizing, scattering, sizes, sorting,
        strided,
    )  # fmt: skip

    _loaded.append(True)
    return TRANSLATIONS
