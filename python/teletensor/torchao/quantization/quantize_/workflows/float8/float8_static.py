"""Float8StaticActivationFloat8WeightConfig: float8 weights, and activations that are rounded to float8 with a fixed scale."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...... import _C
from ......_C import Tensor
from ......_functions import finfo
from ......_grad_mode import no_grad
from ......nn import Linear, Module, Parameter
from ......nn import functional as F
from .....core.config import AOBaseConfig
from .....utils import bound
from ....granularity import Granularity, PerTensor
from ....quant_primitives import quantize_float8
from ....transform_module import register_quantize_module_handler
from .float8_tensor import Float8MMConfig, Float8Tensor

__all__ = ["Float8ObservedLinear", "Float8StaticActivationFloat8WeightConfig", "PrototypeFloat8Tensor"]


class PrototypeFloat8Tensor(Float8Tensor):
    """A Float8Tensor whose activations are rounded to float8 with the scale ``act_quant_scale``, of one element."""

    __module__ = "teletensor.torchao.quantization"  # the name in torchao's files
    optional_tensor_data_names = ["act_quant_scale"]
    optional_tensor_attribute_names = [*Float8Tensor.optional_tensor_attribute_names, "activation_dtype"]

    def __init__(
        self, qdata: Tensor, scale: Tensor, act_quant_scale: Tensor | None = None, block_size: list[int] | None = None,
        mm_config: Float8MMConfig | None = None, act_quant_kwargs: Any = None, dtype: Any = None,
        activation_dtype: Any = _C.float8_e4m3fn,
    ) -> None:  # fmt: skip
        if act_quant_scale is None or act_quant_scale.numel() != 1:
            raise ValueError("expected act_quant_scale of one element")
        super().__init__(qdata, scale, block_size, mm_config, act_quant_kwargs, dtype)
        self.act_quant_scale, self.activation_dtype = act_quant_scale.to(_C.float32), activation_dtype


@PrototypeFloat8Tensor.implements_torch_function(F.linear)
def _linear(_func: Any, _types: Any, args: tuple, kwargs: dict) -> Tensor:
    x, weight, bias = bound("input weight bias", args, kwargs).values()
    rows, scale = x.detach().reshape(-1, x.shape[-1]), weight.act_quant_scale.reshape(1, 1)
    rounded = quantize_float8(rows, scale, (1, 1), weight.activation_dtype)
    sums = F.linear(rounded.to(_C.float32), weight.qdata.to(_C.float32))
    found = (sums * scale * weight.scale.reshape(1, -1)).to(x.dtype).reshape(*x.shape[:-1], weight.shape[0])
    return found if bias is None else found + bias


@dataclasses.dataclass
class Float8StaticActivationFloat8WeightConfig(AOBaseConfig):
    """Weights and activations in float8; the scale of activations is given, or observed.

    Args:
        step: "prepare" observes the activations of linear layers, "convert" quantizes the observed layers.
        act_quant_scale: the scale, without ``step``.
        granularity: PerTensor().
        quantize_and_dequantize_output, output_act_quant_scale: not supported.
    """

    step: Any = None
    act_quant_scale: Any = None
    activation_dtype: Any = _C.float8_e4m3fn
    weight_dtype: Any = _C.float8_e4m3fn
    granularity: Granularity | None = None
    mm_config: Float8MMConfig | None = None
    kernel_preference: Any = None
    set_inductor_config: bool = True
    quantize_and_dequantize_output: bool = False
    output_act_quant_scale: Any = None

    def __post_init__(self) -> None:
        self.mm_config = self.mm_config or Float8MMConfig(use_fast_accum=True)
        if self.step is not None:
            self.step = getattr(self.step, "value", self.step).lower()
            if self.step not in ("prepare", "convert"):
                raise ValueError(f"{self.step} is not one of ['prepare', 'convert']")
        if not isinstance(self.granularity or PerTensor(), PerTensor):
            raise ValueError(f"Only PerTensor granularity is supported for static activations, got {self.granularity}")
        if self.quantize_and_dequantize_output or self.output_act_quant_scale is not None:
            raise NotImplementedError("[Float8StaticActivationFloat8WeightConfig] results are not quantized")


class Float8ObservedLinear(Linear):
    """A linear layer that records the largest absolute value of its inputs, in the engine."""

    largest: Tensor

    @classmethod
    def from_float(cls, float_linear: Linear) -> Float8ObservedLinear:
        """The layer with the parameters of an ordinary one."""
        weight = float_linear.weight
        made = cls(
            float_linear.in_features, float_linear.out_features, float_linear.bias is not None, device=weight.device, dtype=weight.dtype
        )
        made.weight, made.bias = float_linear.weight, float_linear.bias
        made.register_buffer("largest", _C.torch.zeros((), device=weight.device))
        return made

    def forward(self, input: Tensor) -> Tensor:
        """The layer's result."""
        with no_grad():
            self.largest.copy_(_C.torch.maximum(self.largest, input.detach().abs().amax().to(_C.float32)))
        return F.linear(input, self.weight, self.bias)

    def scale_of(self, dtype: Any) -> Tensor:
        """The scale with which the largest value becomes that of a float8 dtype."""
        return (self.largest / finfo(dtype).max).clamp(min=finfo(_C.float32).eps)


@register_quantize_module_handler(Float8StaticActivationFloat8WeightConfig)
@no_grad()
def _float8_static(module: Module, config: Float8StaticActivationFloat8WeightConfig) -> Module:
    if config.step == "prepare":
        if not isinstance(module, Linear):
            raise NotImplementedError(f"[Float8StaticActivationFloat8WeightConfig] expected a Linear, got {type(module).__name__}")
        return Float8ObservedLinear.from_float(module)
    scale = config.act_quant_scale
    if config.step == "convert":
        if not isinstance(module, Float8ObservedLinear):
            return module
        scale = module.scale_of(config.activation_dtype)
        made = Linear(module.in_features, module.out_features, module.bias is not None, device=module.weight.device)
        made.weight, made.bias = module.weight, module.bias
        module = made
    if scale is None:
        raise ValueError("act_quant_scale must be provided when step is not specified")
    found = Float8Tensor.from_hp(module.weight, config.weight_dtype, PerTensor())
    weight = PrototypeFloat8Tensor(
        found.qdata, found.scale, scale, found.block_size, config.mm_config, dtype=module.weight.dtype,
        activation_dtype=config.activation_dtype,
    )  # fmt: skip
    module.weight = Parameter(weight, requires_grad=False)
    return module
