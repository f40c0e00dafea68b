"""Packed weights: the integers, scales and biases of quantized layers, as torch.ops.quantized takes them.

The engine multiplies the integers as they are stored, so that packing only converts the scales once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _C
from .._C import Tensor
from .._quantized_names import qint8
from .tensor import QuantizedTensor, wrapped


class Weight:
    """A weight of qint8 and the parameters that products need.

    Attributes:
        original: a copy of the quantized tensor, which later changes of the weight do not reach.
        ints: its int8 integers.
        scales: float32 numbers, one or one per output channel.
        zero_points: a number, or int64 numbers per channel.
    """

    def __init__(self, name: str, weight: Any, axis: int = 0) -> None:
        if not isinstance(weight, QuantizedTensor) or weight.dtype is not qint8:
            got = weight.dtype if isinstance(weight, Tensor) else type(weight).__name__
            raise RuntimeError(f"[quantized::{name}] expected a weight of torch.qint8, got {got}")
        q = weight._quantizer
        if q.axis is not None and q.axis != axis:
            raise RuntimeError(f"[quantized::{name}] expected scales per entry of dimension {axis}, got dimension {q.axis}")
        self.original = wrapped(weight._ints.contiguous().clone(), q)
        self.ints = self.original._ints
        scale = q.scale if isinstance(q.scale, Tensor) else _C.tensor(q.scale, device=weight.device)
        self.scales = scale.to(_C.float32).reshape(-1)
        self.zero_points = q.zero_point


def checked_bias(name: str, bias: Any, count: int) -> Tensor | None:
    """The bias as float32. Raises RuntimeError for another size."""
    if bias is None:
        return None
    if bias.dim() != 1 or bias.shape[0] != count:
        raise RuntimeError(f"[quantized::{name}] expected a bias of {count} numbers, got sizes {tuple(bias.shape)}")
    return bias.detach().dequantize()


class LinearPackedParams:
    """The weight (outputs, inputs) and bias of a linear layer."""

    def __init__(self, weight: Any, bias: Tensor | None = None) -> None:
        self._weight = Weight("linear_prepack", weight)
        if weight.dim() != 2:
            raise RuntimeError("The weight tensor for quantized::linear_prepack should be 2-dimensional.")
        self._bias = checked_bias("linear_prepack", bias, weight.shape[0])

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        """The quantized weight and the bias."""
        return self._weight.original, self._bias

    def bias(self) -> Tensor | None:
        """The bias."""
        return self._bias

    def __getstate__(self) -> tuple:
        return self.unpack(), "LinearPackedParamsBase"

    def __setstate__(self, state: tuple) -> None:
        self.__init__(*state[0])  # type: ignore[misc]

    def __deepcopy__(self, memo: dict) -> LinearPackedParams:
        copied = type(self)(self._weight.original.clone(), None if self._bias is None else self._bias.clone())
        return memo.setdefault(id(self), copied)


class HalfLinearPackedParams(LinearPackedParams):
    """The weight of a linear layer, rounded to float16, and its bias."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        if isinstance(weight, QuantizedTensor) or weight.dtype is not _C.float32:
            raise RuntimeError(f"[quantized::linear_prepack_fp16] expected a weight of float32, got {weight.dtype}")
        self._half = weight.detach().to(_C.float16)
        self._bias = checked_bias("linear_prepack_fp16", bias, weight.shape[0])

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        """The weight as float32, and the bias."""
        return self._half.to(_C.float32), self._bias

    def __deepcopy__(self, memo: dict) -> HalfLinearPackedParams:
        copied = type(self)(self._half.to(_C.float32), None if self._bias is None else self._bias.clone())
        return memo.setdefault(id(self), copied)


class ConvPackedParams:
    """The weight, bias and parameters of a convolution over `space` dimensions."""

    def __init__(
        self, space: int, weight: Any, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int],
        output_padding: Sequence[int], dilation: Sequence[int], groups: int, transpose: bool,
    ) -> None:  # fmt: skip
        name = f"conv{'_transpose' if transpose else ''}{space}d_prepack"
        self._weight = Weight(name, weight, axis=1 if transpose else 0)
        if weight.dim() != space + 2:
            raise RuntimeError(f"[quantized::{name}] expected a weight of {space + 2} dimensions, got {weight.dim()}")
        outputs = weight.shape[1] * groups if transpose else weight.shape[0]
        self._bias = checked_bias(name, bias, outputs)
        self._lists = [
            [int(n) for n in numbers] for numbers in (stride, padding, output_padding, dilation)
        ]
        for what, numbers in zip(("stride", "padding", "output_padding", "dilation"), self._lists):
            if len(numbers) != space:
                raise RuntimeError(f"[quantized::{name}] expected {space} numbers for {what}, got {len(numbers)}")
        self._groups, self._transpose, self._space = int(groups), bool(transpose), space

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        """The quantized weight and the bias."""
        return self._weight.original, self._bias

    def stride(self) -> list[int]:
        """The stride."""
        return list(self._lists[0])

    def padding(self) -> list[int]:
        """The padding."""
        return list(self._lists[1])

    def output_padding(self) -> list[int]:
        """The padding of a transposed convolution's output."""
        return list(self._lists[2])

    def dilation(self) -> list[int]:
        """The dilation."""
        return list(self._lists[3])

    def groups(self) -> int:
        """The number of groups."""
        return self._groups

    def transpose(self) -> bool:
        """Whether the convolution is transposed."""
        return self._transpose

    def _arguments(self) -> tuple:
        return (self._space, *self.unpack(), *self._lists, self._groups, self._transpose)

    def __getstate__(self) -> tuple:
        return self._arguments()

    def __setstate__(self, state: tuple) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def __deepcopy__(self, memo: dict) -> ConvPackedParams:
        space, weight, bias, *rest = self._arguments()
        copied = type(self)(space, weight.clone(), None if bias is None else bias.clone(), *rest)
        return memo.setdefault(id(self), copied)


class EmbeddingPackedParams:
    """The table of an embedding: torch.quint8 with a scale and zero point per row."""

    def __init__(self, weight: Any) -> None:
        if not isinstance(weight, QuantizedTensor) or weight.dim() != 2 or weight._quantizer.axis not in (0, None):
            raise RuntimeError("[quantized::embedding_bag_prepack] expected a quantized matrix with a scale per row")
        self._weight = weight.clone()

    def unpack(self) -> Tensor:
        """The quantized table."""
        return self._weight

    def __getstate__(self) -> tuple:
        return (self._weight,)

    def __setstate__(self, state: tuple) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def __deepcopy__(self, memo: dict) -> EmbeddingPackedParams:
        return memo.setdefault(id(self), type(self)(self._weight.clone()))
