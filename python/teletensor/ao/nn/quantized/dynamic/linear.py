"""Linear with a quantized weight, of and to float tensors."""

from __future__ import annotations

from typing import Any

from ..... import _C, nn, ops
from ..... import _quantized_names as q
from ....._C import Tensor
from ....._lazy import set_module
from .....nn.modules.linear import NonDynamicallyQuantizableLinear
from ....quantization.qconfig import default_dynamic_qconfig
from ...intrinsic import fused as nni
from ...qat.dynamic.linear import Linear as QATLinear
from ..linear import Linear as StaticLinear
from ..utils import quantize_weight


class Linear(StaticLinear):
    """A linear layer with a qint8 (or float16) weight, whose input is quantized with its own range."""

    _version = 4

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = q.qint8):
        super().__init__(in_features, out_features, bias_, dtype=dtype)
        self.version: int | None = 4  # older states were made for ranges of 8 bits

    def forward(self, x: Tensor) -> Tensor:
        packed = self._packed_params._packed_params
        if self._packed_params.dtype == _C.float16:
            return ops.quantized.linear_dynamic_fp16(x, packed).to(x.dtype)
        return ops.quantized.linear_dynamic(x, packed, self.version is not None and self.version >= 4).to(x.dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}"
        return text + (f", qscheme={self.weight().qscheme()}" if self._packed_params.dtype == q.qint8 else "")

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, *args: Any) -> None:
        self.version = local_metadata.get("version")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Linear:
        """The quantized layer of a layer with a QConfig."""
        del use_precomputed_fake_quant  # the weight is observed again, as in PyTorch
        allowed = (nn.Linear, NonDynamicallyQuantizableLinear, nni.LinearReLU, QATLinear)
        if type(mod) not in allowed:
            raise AssertionError(
                f"nn.quantized.dynamic.Linear.from_float only works for one of {[kind.__name__ for kind in allowed]}, got {type(mod)}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if type(mod) is nni.LinearReLU:
            mod = mod[0]
        configured = mod.qconfig is not None and mod.qconfig.weight is not None
        observer = (mod.qconfig if configured else default_dynamic_qconfig).weight()
        if observer.dtype not in (q.qint8, _C.float16):
            raise AssertionError(f"The only supported dtypes for dynamic quantized linear are qint8 and float16, got: {observer.dtype}")
        observer(mod.weight)
        weight = mod.weight.detach().float()
        made = cls(mod.in_features, mod.out_features, dtype=observer.dtype)
        made.set_weight_bias(quantize_weight(weight, observer) if observer.dtype == q.qint8 else weight, mod.bias)
        return made

    @classmethod
    def from_reference(cls, ref_qlinear: nn.Module) -> Linear:  # type: ignore[override]
        """The layer of a reference layer."""
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features, dtype=ref_qlinear.weight_dtype)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        return made


set_module("teletensor.ao.nn.quantized.dynamic.modules.linear", Linear)
