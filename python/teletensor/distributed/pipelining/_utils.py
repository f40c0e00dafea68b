"""Shapes and dtypes of the tensors between stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ... import _C
from ..._C import Tensor


class PipeliningShapeError(RuntimeError):
    """A stage's values have other shapes or dtypes than those of the first microbatch."""


class TensorMeta(NamedTuple):
    """Shape and dtype of a tensor."""

    shape: tuple[int, ...]
    dtype: _C.dtype

    @staticmethod
    def of(tensor: Tensor) -> TensorMeta:
        return TensorMeta(tuple(tensor.shape), tensor.dtype)

    def empty(self, device) -> Tensor:
        return _C.torch.empty(self.shape, dtype=self.dtype, device=device)

    @property
    def has_gradient(self) -> bool:
        return self.dtype.is_floating_point or self.dtype.is_complex


_DTYPES = [
    _C.float32, _C.float64, _C.float16, _C.bfloat16, _C.complex64, _C.complex128, _C.int8, _C.int16, _C.int32, _C.int64,
    _C.uint8, _C.uint16, _C.uint32, _C.uint64, _C.bool,
]  # fmt: skip
ENCODED_SIZE = 256  # numbers in an encoded description
_MAX_DIMS = 64


def encode(metas: Sequence[TensorMeta]) -> list[int]:
    """Describes tensors by a fixed number of integers.

    Raises:
        ValueError: a dtype is not supported, or there are too many tensors.
    """
    numbers = [len(metas)]
    for meta in metas:
        if meta.dtype not in _DTYPES:
            raise ValueError(f"[pipelining] tensors of {meta.dtype} cannot be sent between stages")
        numbers += [_DTYPES.index(meta.dtype), len(meta.shape), *meta.shape]
    if len(numbers) > ENCODED_SIZE:
        raise ValueError(f"[pipelining] a stage has too many outputs: {len(metas)}")
    return numbers + [0] * (ENCODED_SIZE - len(numbers))


def decode(numbers: list[int]) -> tuple[TensorMeta, ...]:
    """The inverse of encode().

    Raises:
        RuntimeError: the numbers are not a description.
    """
    metas = []
    count, at = numbers[0], 1
    for _ in range(count):
        if at + 2 > len(numbers) or not (0 <= numbers[at] < len(_DTYPES) and 0 <= numbers[at + 1] <= _MAX_DIMS):
            raise RuntimeError("[pipelining] expected a description of the previous stage's outputs")
        dtype, dims = _DTYPES[numbers[at]], numbers[at + 1]
        shape = tuple(numbers[at + 2 : at + 2 + dims])
        if len(shape) != dims or any(n < 0 for n in shape):
            raise RuntimeError("[pipelining] expected a description of the previous stage's outputs")
        metas.append(TensorMeta(shape, dtype))
        at += 2 + dims
    return tuple(metas)


def check_metas(what: str, expected: Sequence[TensorMeta], actual: Sequence[TensorMeta]) -> None:
    """Raises PipeliningShapeError unless shapes and dtypes are as expected."""
    if len(expected) != len(actual):
        raise PipeliningShapeError(f"{what}: expected {len(expected)} tensors, got {len(actual)}")
    for i, (e, a) in enumerate(zip(expected, actual, strict=True)):
        if e != a:
            raise PipeliningShapeError(
                f"{what}: expected tensor {i} of shape {e.shape} and {e.dtype}, got {a.shape} and {a.dtype}"
            )
