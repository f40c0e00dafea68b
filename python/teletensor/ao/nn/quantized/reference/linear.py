"""Linear that computes with the numbers of its quantized weight."""

from __future__ import annotations

from typing import Any

from ..... import nn
from ....._C import Tensor
from ....._lazy import set_module
from .....nn import functional as F
from .utils import ReferenceQuantizedModule


class Linear(nn.Linear, ReferenceQuantizedModule):
    """A linear layer whose weight is rounded in each call."""

    _IS_REFERENCE = True

    def __init__(
        self, in_features: int, out_features: int, bias_: bool = True, device: Any = None, dtype: Any = None,
        weight_qparams: dict[str, Any] | None = None,
    ):  # fmt: skip
        super().__init__(in_features, out_features, bias_, device=device, dtype=dtype)
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self) -> str:
        return "QuantizedLinear(Reference)"

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.get_weight(), self.bias)

    @classmethod
    def from_float(cls, float_linear: nn.Module, weight_qparams: dict[str, Any]) -> Linear:
        """The reference layer of a float layer and its weight's scale and zero point."""
        m = float_linear
        made = cls(
            m.in_features, m.out_features, m.bias is not None, device=m.weight.device, dtype=m.weight.dtype, weight_qparams=weight_qparams
        )
        made._take(m)
        return made


set_module("teletensor.ao.nn.quantized.reference.modules.linear", Linear)
