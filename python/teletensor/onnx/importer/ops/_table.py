"""The tables of all subjects, by domain."""

from __future__ import annotations

from collections.abc import Callable

from . import (
    activation,
    arithmetic,
    attention,
    casts,
    control,
    convolution,
    detection,
    images,
    indexing,
    loss,
    matrices,
    normalization,
    pooling,
    quantized,
    random,
    recurrent,
    reduction,
    resampling,
    sequences,
    shapes,
    signal,
    text,
    traditional,
    training,
    trees,
)  # fmt: skip

_TABLES = {
    "": (
        activation, arithmetic, attention, casts, control, convolution, detection, images, indexing, loss, matrices,
        normalization, pooling, quantized, random, recurrent, reduction, resampling, sequences, shapes, signal, text,
    ),
    "ai.onnx.ml": (traditional, trees),
    "ai.onnx.preview.training": (training,),
}  # fmt: skip
OPERATORS: dict[str, dict[str, tuple]] = {
    domain: {name: rows for module in modules for name, rows in module.TABLE.items()}
    for domain, modules in _TABLES.items()
} | {"ai.onnx.preview": attention.PREVIEW}


def find(domain: str, name: str, version: int) -> Callable | None:
    """The function of an operator in a version of its operator set, or None."""
    best = None
    for since, function in OPERATORS.get(domain, {}).get(name, ()):
        if since <= version:
            best = function
    return best
