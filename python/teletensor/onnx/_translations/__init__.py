"""Translations of operators to ONNX, one file per subject; load() fills the table of onnx/_registry.py."""

from __future__ import annotations

_loaded: list[bool] = []


def load() -> None:
    """Imports the files, once."""
    if _loaded:
        return
    from . import (  # noqa: F401 - they fill the table
        activations, arithmetic, attention, comparisons, convolution, creation, engine, fourier, indexing, layout, linear, losses, nodes,
        normalisation,
        padding, pooling, quantization, random, recurrent, reductions, refused, resizing, scattering, sizes, sorting,
    )  # fmt: skip

    _loaded.append(True)
