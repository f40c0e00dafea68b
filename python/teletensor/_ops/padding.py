"""pad: constants, reflection, replication and wrapping around at the ends of dimensions."""

from __future__ import annotations

from .. import _C
from .._C import Tensor

_ops = _C.ops


def pad(input, pad, mode: str = "constant", value=None) -> Tensor:
    """Pads the ends of the last dimensions; negative padding crops. `pad` starts with the last dimension's two ends."""
    pad = list(pad)
    if any(isinstance(n, str) for n in pad):
        raise TypeError(f"pad(): argument 'pad' must be tuple of ints, got {pad}")
    if len(pad) % 2 or len(pad) // 2 > input.dim():
        raise RuntimeError(f"Padding length must be even and at most twice the number of dimensions, got {pad}")
    if mode == "constant":
        return _ops.pad(input, pad, 0.0 if value is None else value)
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    return _ops.pad_edges(input, pad, mode)
