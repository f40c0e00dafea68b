"""The formats of tensors in GGUF files: elements and bytes of a block."""

from __future__ import annotations

from typing import NamedTuple


class Format(NamedTuple):
    """A format: its name, and the elements and bytes of a block."""

    name: str
    block: int
    nbytes: int


FORMATS = {
    0: Format("F32", 1, 4), 1: Format("F16", 1, 2), 30: Format("BF16", 1, 2),
    2: Format("Q4_0", 32, 18), 3: Format("Q4_1", 32, 20), 6: Format("Q5_0", 32, 22), 7: Format("Q5_1", 32, 24),
    8: Format("Q8_0", 32, 34), 10: Format("Q2_K", 256, 84), 11: Format("Q3_K", 256, 110), 12: Format("Q4_K", 256, 144),
    13: Format("Q5_K", 256, 176), 14: Format("Q6_K", 256, 210),
    24: Format("I8", 1, 1), 25: Format("I16", 1, 2), 26: Format("I32", 1, 4), 27: Format("I64", 1, 8), 28: Format("F64", 1, 8),
}  # fmt: skip
