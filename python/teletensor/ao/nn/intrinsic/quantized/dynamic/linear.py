"""LinearReLU with a quantized weight, of and to float tensors."""

from __future__ import annotations

from typing import Any

from ...... import _C, nn, ops
from ...... import _quantized_names as q
from ......_C import Tensor
from ......_lazy import set_module
from ....quantized.dynamic.linear import Linear
from ... import fused as nni


class LinearReLU(Linear):
    """A linear layer and a ReLU, whose input is quantized with its own range."""

    _FLOAT_MODULE = nni.LinearReLU

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = q.qint8):
        super().__init__(in_features, out_features, bias, dtype)

    def forward(self, x: Tensor) -> Tensor:
        packed = self._packed_params._packed_params
        if self._packed_params.dtype == _C.float16:
            return ops.quantized.linear_relu_dynamic_fp16(x, packed).to(x.dtype)
        return ops.quantized.linear_relu_dynamic(x, packed, True).to(x.dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinearReLU"

    @classmethod
    def from_reference(cls, ref_qlinear_relu: nn.Module) -> Linear:
        """The module of a fused reference module."""
        return super().from_reference(ref_qlinear_relu[0])


set_module("teletensor.ao.nn.intrinsic.quantized.dynamic.modules.linear_relu", LinearReLU)
