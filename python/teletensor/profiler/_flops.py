"""Floating-point operations of a kernel, from the sizes of its arguments and results."""

from __future__ import annotations

import math
from collections.abc import Sequence

Shape = Sequence[int]


def _product(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    return 2 * math.prod(outputs[0]) * inputs[0][-1]  # the last dimension of the first factor is summed over


def _convolution(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    return 2 * math.prod(outputs[0]) * math.prod(inputs[1][1:])


def _transposed_convolution(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    return 2 * math.prod(inputs[0]) * math.prod(inputs[1][1:])


def _pointwise(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    return math.prod(outputs[0])


_BY_NAME = {
    "matmul": _product, "linear": _product, "convolution": _convolution, "convolution_input": _transposed_convolution,
    "add": _pointwise, "mul": _pointwise,
}  # fmt: skip


def flops(name: str, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    """Returns the number of operations, or 0 for a kernel that is not counted.

    PyTorch counts the same operators, except that it does not count the gradients of convolutions.
    """
    count = _BY_NAME.get(name)
    if count is None or not inputs or not outputs or (count is not _pointwise and not inputs[0]):
        return 0
    return count(inputs, outputs)
