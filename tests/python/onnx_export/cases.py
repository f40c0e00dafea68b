"""Case: a function or module, with descriptions of its inputs, that is exported and compared in onnxruntime.

An input is described by a string such as "f:n,3": the type, and sizes. Letters among the sizes are dynamic dimensions, which have
one size in the example and another one in the second comparison. Types: f float32, d float64, h float16, i int64, j int32, u uint8,
s int8, b bool; p positive float32, q float32 between 0 and 1; i5 indices below 5.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

FIRST = {"n": 3, "m": 4, "k": 5}
SECOND = {"n": 5, "m": 7, "k": 2}


@dataclasses.dataclass
class Case:
    """A row of the table.

    Attributes:
        call: a function of (torch, *inputs), or of torch that returns a module.
        inputs: descriptions.
        is_module: which of the two `call` is.
        opsets: that are tested.
        tolerance: absolute and relative.
        random: compare sizes and dtypes only.
    """

    call: Any
    inputs: list[str]
    is_module: bool = False
    opsets: tuple[int, ...] = (18, 23)
    tolerance: tuple[float, float] = (1e-5, 1e-4)
    random: bool = False


def sizes_of(text: str, values: dict[str, int]) -> tuple[int, ...]:
    """The sizes of a description."""
    _, _, sizes = text.partition(":")
    return tuple(values[s] if s in values else int(s) for s in sizes.split(",") if s)


def dynamic(text: str) -> dict[int, str] | None:
    """The dynamic dimensions of a description."""
    _, _, sizes = text.partition(":")
    found = {i: s for i, s in enumerate(sizes.split(",")) if s in FIRST}
    return found or None


def array(text: str, values: dict[str, int], rng: Any) -> np.ndarray:
    """Values for a description."""
    kind, _, _ = text.partition(":")
    shape = sizes_of(text, values)
    if kind[0] == "i" and kind[1:]:
        return rng.integers(0, int(kind[1:]), shape)
    if kind in "ijus":
        low = 0 if kind == "u" else -9
        return rng.integers(low, 10, shape).astype({"i": np.int64, "j": np.int32, "u": np.uint8, "s": np.int8}[kind])
    if kind == "b":
        return rng.random(shape) < 0.5
    found = rng.standard_normal(shape)
    if kind == "p":
        found = np.abs(found) + 0.1
    if kind == "q":
        found = rng.random(shape) * 0.98 + 0.01
    return found.astype({"d": np.float64, "h": np.float16}.get(kind, np.float32))
