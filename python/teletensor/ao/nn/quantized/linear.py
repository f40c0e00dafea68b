"""Linear layers with quantized weights."""

from __future__ import annotations

from typing import Any

from .... import _C, nn, ops
from .... import _quantized_names as q
from ...._C import Tensor
from ...._lazy import set_module
from ...._quantized import create
from ....nn.modules.linear import NonDynamicallyQuantizableLinear
from ....nn.utils.fusion import fuse_linear_bn_weights
from ....nn.utils.parametrize import type_before_parametrizations
from ..intrinsic import fused as nni
from ..intrinsic.qat import linear_fused as nniqat
from .utils import ScaledResult, WeightedQuantizedModule, hide_packed_params, qparams, quantize_weight


class LinearPackedParams(nn.Module):
    """The weight and bias of a linear layer, in the form that the kernels take: qint8, or float16 for dynamic layers."""

    _version = 3

    def __init__(self, dtype: Any = q.qint8):
        super().__init__()
        self.dtype = dtype
        self.set_weight_bias(empty_weight([1, 1], dtype), None)

    def set_weight_bias(self, weight: Tensor, bias: Tensor | None) -> None:
        """Packs a weight (out, in) and a bias."""
        if self.dtype == q.qint8:
            self._packed_params = ops.quantized.linear_prepack(weight, bias)
        elif self.dtype == _C.float16:
            self._packed_params = ops.quantized.linear_prepack_fp16(weight, bias)
        else:
            raise RuntimeError("Unsupported dtype on dynamic quantized linear!")

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        if self.dtype == _C.float16:
            return ops.quantized.linear_unpack_fp16(self._packed_params)
        return ops.quantized.linear_unpack(self._packed_params)

    def forward(self, x: Tensor) -> Tensor:
        return x

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(
        self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, missing_keys: list, unexpected_keys: list, error_msgs: list
    ) -> None:
        del strict  # no name is missing: the layer's tensors are in one entry
        version = local_metadata.get("version") or 1
        self.dtype = q.qint8 if version < 2 else state_dict.pop(prefix + "dtype")
        if version < 3:
            self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
        else:
            self.set_weight_bias(*state_dict.pop(prefix + "_packed_params"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    def __repr__(self) -> str:
        return repr(self._weight_bias())


def empty_weight(sizes: list[int], dtype: Any) -> Tensor:
    """A weight of a new module: qint8 or float32."""
    if dtype == q.qint8:
        return create._empty_affine_quantized(sizes, scale=1.0, zero_point=0, dtype=q.qint8)
    if dtype == _C.float16:
        return _C.torch.zeros(sizes)
    raise RuntimeError("Unsupported dtype specified for quantized Linear!")


class Linear(ScaledResult, WeightedQuantizedModule):
    """A linear layer with a qint8 weight, of and to quantized tensors.

    Shape: (..., in_features) of quint8 to (..., out_features) with this module's ``scale`` and ``zero_point``.
    """

    _version = 3
    _FLOAT_MODULE: Any = (nn.Linear, NonDynamicallyQuantizableLinear)

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = q.qint8):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        weight = empty_weight([out_features, in_features], dtype)
        self._packed_params = LinearPackedParams(dtype)
        self._packed_params.set_weight_bias(weight, _C.torch.zeros(out_features) if bias_ else None)
        self.scale, self.zero_point = 1.0, 0

    def _get_name(self) -> str:
        return "QuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, zero_point={self.zero_point}, "
            f"qscheme={self.weight().qscheme()}"
        )

    def __repr__(self) -> str:
        return hide_packed_params(self, LinearPackedParams)

    def forward(self, x: Tensor) -> Tensor:
        return ops.quantized.linear(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, *args: Any) -> None:
        if local_metadata.get("version") in (None, 1):  # the weight was this module's own then
            for name in ("weight", "bias"):
                state_dict[f"{prefix}_packed_params.{name}"] = state_dict.pop(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        return self._packed_params._weight_bias()

    def weight(self) -> Tensor:
        """The weight (out_features, in_features), quantized."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The bias, float32."""
        return self._weight_bias()[1]

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Sets a quantized weight and a bias."""
        self._packed_params.set_weight_bias(w, b)

    @classmethod
    def _made(cls, linear: nn.Module, observer: nn.Module, *args: Any, observe: bool = True) -> Linear:
        """The quantized layer of a float layer and the observer (or fake quantization) of its weight."""
        if observe:
            observer(linear.weight)
        if observer.dtype != q.qint8:
            raise AssertionError(f"Weight observer must have dtype torch.qint8, got {observer.dtype}")
        made = cls(linear.in_features, linear.out_features, *args, dtype=observer.dtype)
        made.set_weight_bias(quantize_weight(linear.weight.detach().float(), observer), linear.bias)
        return made

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Linear:
        """The quantized layer of an observed layer, or of one that was trained with a rounded weight."""
        if hasattr(mod, "weight_fake_quant"):
            if type_before_parametrizations(mod) is nniqat.LinearBn1d:
                mod.weight, mod.bias = fuse_linear_bn_weights(
                    mod.weight, mod.bias, mod.bn.running_mean, mod.bn.running_var, mod.bn.eps, mod.bn.weight, mod.bn.bias
                )
            observer, activation = mod.weight_fake_quant, mod.activation_post_process
        else:
            allowed = cls._FLOAT_MODULE if isinstance(cls._FLOAT_MODULE, tuple) else (cls._FLOAT_MODULE,)
            if type_before_parametrizations(mod) not in allowed:
                names = ", ".join(kind.__name__ for kind in allowed)
                raise AssertionError(f"nnq.{cls.__name__}.from_float only works for {names}, but got: {type(mod)}")
            if not hasattr(mod, "qconfig"):
                raise AssertionError("Input float module must have qconfig defined")
            activation = mod.activation_post_process
            if type_before_parametrizations(mod) is nni.LinearReLU:
                mod = mod[0]
            observer = mod.weight_fake_quant if hasattr(mod, "weight_fake_quant") else mod.qconfig.weight()
        made = cls._made(mod, observer, observe=not use_precomputed_fake_quant)
        made.scale, made.zero_point = qparams(activation)
        return made

    @classmethod
    def from_reference(cls, ref_qlinear: nn.Module, output_scale: float, output_zero_point: int) -> Linear:
        """The layer of a reference layer."""
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


set_module("teletensor.ao.nn.quantized.modules.linear", Linear, LinearPackedParams)
