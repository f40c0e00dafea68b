"""Weights that keep the bytes of a GGUF file, or become int8 and int4 weights where the formats are the same."""

from __future__ import annotations

import math
from typing import Any

from ... import _C
from ..._C import Tensor
from ...nn import functional as F
from ...torchao.quantization import Int4Tensor, Int8Tensor
from ...torchao.utils import TorchAOBaseTensor, bound
from ._blocks import PLAIN, VALUES, _half, _nibbles
from ._types import FORMATS, Format


class GGUFTensor(TorchAOBaseTensor):
    """A weight as the bytes of its blocks. F.linear and F.embedding dequantize it, embedding only the rows that it reads.

    Args:
        qdata: (blocks, bytes of a block), uint8.
        kind: the format's name, such as "Q4_K".
        shape: of the weight; dtype: of the dequantized values.
    """

    tensor_data_names = ["qdata"]
    tensor_attribute_names = ["kind", "shape", "dtype"]

    @classmethod
    def _outer(cls, given: dict[str, Any]) -> tuple[Any, Any]:
        return given["shape"], given["dtype"]

    def __init__(self, qdata: Tensor, kind: str, shape: Any, dtype: Any):
        super().__init__()
        sizes = next((f for f in FORMATS.values() if f.name == kind and kind in VALUES), None)
        fits = sizes and qdata.dtype == _C.uint8 and qdata.dim() == 2 and qdata.shape[1] == sizes.nbytes
        if not fits or qdata.shape[0] * sizes.block != math.prod(shape) or dtype != self.dtype:
            raise ValueError(f"expected the blocks of a GGUF format, got {kind!r}, {qdata.dtype} of shape {tuple(qdata.shape)}")
        self.qdata, self.kind = qdata, kind

    def dequantize(self, output_dtype: Any = None) -> Tensor:
        return VALUES[self.kind](self.qdata).reshape(self.shape).to(output_dtype or self.dtype)


@GGUFTensor.implements_torch_function(F.linear)
def _linear(_func: Any, _types: Any, args: tuple, kwargs: dict) -> Tensor:
    x, weight, bias = bound("input weight bias", args, kwargs).values()
    return F.linear(x, weight.dequantize(x.dtype), bias)


@GGUFTensor.implements_torch_function(F.embedding)
def _embedding(_func: Any, _types: Any, args: tuple, kwargs: dict) -> Tensor:
    given = bound("input weight padding_idx max_norm", args, kwargs)  # the others concern gradients of the weight
    indices, weight = given["input"], given["weight"]
    if given["max_norm"] is not None:
        raise NotImplementedError("[embedding] max_norm changes the weight, which is quantized")
    rows = weight.qdata.reshape(weight.shape[0], -1).index_select(0, indices.reshape(-1))
    chosen = GGUFTensor(rows.reshape(-1, weight.qdata.shape[1]), weight.kind, (rows.shape[0], weight.shape[1]), weight.dtype)
    return chosen.dequantize().reshape(*indices.shape, weight.shape[1])


def plain(data: Tensor, form: Format, shape: tuple[int, ...]) -> Tensor:
    """The values of a tensor's bytes: the stored dtype if it is an ordinary one, else float32."""
    if form.name in PLAIN:
        return data.view(PLAIN[form.name]).reshape(shape)
    return VALUES[form.name](data.reshape(-1, form.nbytes)).reshape(shape)


def packed(data: Tensor, form: Format, shape: tuple[int, ...], dtype: _C.dtype) -> Tensor:
    """A weight that stays packed: Q8_0 as Int8Tensor, Q4_0 matrices as Int4Tensor, other quantized formats as GGUFTensor."""
    if form.name in PLAIN:
        return plain(data, form, shape)
    blocks = data.reshape(-1, form.nbytes)
    if form.name == "Q8_0" and len(shape) == 2 and dtype == _C.float32:
        scale = _half(blocks, 0).reshape(shape[0], -1)
        return Int8Tensor(blocks[:, 2:].contiguous().view(_C.int8).reshape(shape), scale, [1, 32], dtype)
    if form.name == "Q4_0" and len(shape) == 2 and dtype == _C.float32:
        q = _nibbles(blocks[:, 2:]).reshape(shape)
        scale = _half(blocks, 0).reshape(shape[0], -1).t().contiguous()
        return Int4Tensor.from_values(q, scale, _C.torch.zeros_like(scale), 32)
    return GGUFTensor(blocks, form.name, shape, dtype)
