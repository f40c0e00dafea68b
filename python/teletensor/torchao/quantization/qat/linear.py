"""torchao.quantization.qat.linear: linear layers that are trained with rounded weights and activations."""

from __future__ import annotations

from typing import Any

from .... import _C, _small_integers
from ...._C import Tensor
from ...._functions import finfo
from ...._grad_mode import no_grad
from ....nn import Linear, Module
from ....nn import functional as F
from ..granularity import PerGroup, PerRow
from ..linear_quant_modules import Int8DynActInt4WeightLinear, WeightOnlyInt4Linear, fits_int4
from ..quant_primitives import (
    MappingType,
    TorchAODType,
    ZeroPointDomain,
    choose_qparams_affine,
    choose_qparams_affine_tinygemm,
    quantize_affine,
    quantize_affine_tinygemm,
)
from .fake_quantize_config import FakeQuantizeConfigBase, Float8FakeQuantizeConfig, IntxFakeQuantizeConfig
from .fake_quantizer import FakeQuantizerBase
from .two_step_quantizer import TwoStepQuantizer

__all__ = [
    "FakeQuantizedLinear", "Float8ActInt4WeightQATQuantizer", "Int4WeightOnlyQATLinear", "Int4WeightOnlyQATQuantizer",
    "Int8DynActInt4WeightQATLinear", "Int8DynActInt4WeightQATQuantizer", "disable_4w_fake_quant", "disable_8da4w_fake_quant",
    "disable_linear_fake_quant", "enable_4w_fake_quant", "enable_8da4w_fake_quant", "enable_linear_fake_quant",
]  # fmt: skip


class FakeQuantizedLinear(Linear):
    """A linear layer with a rounded weight, and rounded inputs.

    Args:
        activation_config, weight_config: how they are rounded; None: not.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = False, activation_config: FakeQuantizeConfigBase | None = None,
        weight_config: FakeQuantizeConfigBase | None = None, *args: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(in_features, out_features, bias, *args, **kwargs)
        grouped = isinstance(weight_config, IntxFakeQuantizeConfig) and isinstance(weight_config.granularity, PerGroup)
        if grouped and in_features % weight_config.group_size:
            raise ValueError(f"in_features ({in_features}) % group_size ({weight_config.group_size}) must be == 0")
        self.activation_fake_quantizer = None if activation_config is None else FakeQuantizerBase.from_config(activation_config)
        self.weight_fake_quantizer = None if weight_config is None else FakeQuantizerBase.from_config(weight_config)

    def forward(self, x: Tensor) -> Tensor:
        """The layer's result."""
        if self.activation_fake_quantizer is not None:
            x = self.activation_fake_quantizer(x)
        weight = self.weight if self.weight_fake_quantizer is None else self.weight_fake_quantizer(self.weight)
        return F.linear(x, weight, self.bias)

    def to_linear(self) -> Linear:
        """An ordinary layer with the same parameters."""
        return _with_parameters(Linear(self.in_features, self.out_features, self.bias is not None, **_like(self)), self)

    @classmethod
    def from_linear(
        cls, mod: Linear, activation_config: FakeQuantizeConfigBase | None = None, weight_config: FakeQuantizeConfigBase | None = None
    ) -> FakeQuantizedLinear:
        """The layer with the parameters of an ordinary one."""
        made = FakeQuantizedLinear(
            mod.in_features, mod.out_features, mod.bias is not None, activation_config, weight_config, **_like(mod)
        )
        return _with_parameters(made, mod)


def _like(mod: Linear) -> dict[str, Any]:
    return {"device": mod.weight.device, "dtype": mod.weight.dtype}


def _with_parameters(made: Any, mod: Linear) -> Any:
    if mod.weight.device.type != "meta":
        made.weight, made.bias = mod.weight, mod.bias
    return made


def enable_linear_fake_quant(mod: Module, enabled: bool = True) -> None:
    """Switches the rounding of a FakeQuantizedLinear on."""
    if isinstance(mod, FakeQuantizedLinear):
        for fake in (mod.activation_fake_quantizer, mod.weight_fake_quantizer):
            if fake is not None:
                fake.enabled = enabled


def disable_linear_fake_quant(mod: Module) -> None:
    """Switches the rounding of a FakeQuantizedLinear off."""
    enable_linear_fake_quant(mod, enabled=False)


class _Switched(FakeQuantizedLinear):
    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Switches the rounding on."""
        enable_linear_fake_quant(self, enabled)

    def disable_fake_quant(self) -> None:
        """Switches the rounding off."""
        enable_linear_fake_quant(self, enabled=False)


def _activation_config(precision: Any) -> IntxFakeQuantizeConfig:
    return IntxFakeQuantizeConfig(
        _C.int8, "per_token", is_symmetric=False, scale_precision=precision, zero_point_precision=precision, eps=finfo(precision).eps
    )


def _weight_config_8da4w(group_size: int, precision: Any) -> IntxFakeQuantizeConfig:
    return IntxFakeQuantizeConfig(
        TorchAODType.INT4, group_size=group_size, is_symmetric=True, scale_precision=precision, zero_point_precision=precision
    )


def _weight_config_4w(group_size: int, precision: Any) -> IntxFakeQuantizeConfig:
    return IntxFakeQuantizeConfig(
        _small_integers.uint4, group_size=group_size, is_symmetric=False, scale_precision=precision, zero_point_precision=precision,
        zero_point_domain=ZeroPointDomain.FLOAT,
    )  # fmt: skip


class Int8DynActInt4WeightQATLinear(_Switched):
    """A layer with int8 inputs, per row, and weights of 4 bits, per group."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = False, device: Any = None, groupsize: int = 256,
        precision: Any = _C.float32, scales_precision: Any = _C.float32,
    ) -> None:  # fmt: skip
        super().__init__(
            in_features, out_features, bias, _activation_config(_C.float32), _weight_config_8da4w(groupsize, scales_precision),
            device=device, dtype=precision,
        )  # fmt: skip


class Int4WeightOnlyQATLinear(_Switched):
    """A layer with weights of 4 bits, per group, whose zero points are numbers."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = False, device: Any = None, groupsize: int = 256, inner_k_tiles: int = 8,
        precision: Any = _C.bfloat16, scales_precision: Any = _C.bfloat16,
    ) -> None:  # fmt: skip
        if scales_precision is not _C.bfloat16:
            raise AssertionError("only bf16 is supported for scales")
        if not fits_int4(in_features, groupsize, inner_k_tiles):
            raise ValueError("Padding for QAT 4w is not supported yet")
        self.inner_k_tiles = inner_k_tiles
        weight = _weight_config_4w(groupsize, scales_precision)
        super().__init__(in_features, out_features, bias, None, weight, device=device, dtype=precision)


def _enable(kind: type, enabled: bool) -> Any:
    def switch(mod: Module) -> None:
        if isinstance(mod, kind):
            mod.enable_fake_quant(enabled)

    switch.__doc__ = f"Switches the rounding of {kind.__name__} {'on' if enabled else 'off'}."
    return switch


enable_8da4w_fake_quant, disable_8da4w_fake_quant = (_enable(Int8DynActInt4WeightQATLinear, on) for on in (True, False))
enable_4w_fake_quant, disable_4w_fake_quant = (_enable(Int4WeightOnlyQATLinear, on) for on in (True, False))


def _replace(model: Module, accept: Any, make: Any) -> None:
    """Replaces the modules below a model that a function accepts."""
    for name, child in list(model.named_children()):
        if accept(child):
            setattr(model, name, make(child))
        else:
            _replace(child, accept, make)


class _LegacyQATQuantizer(TwoStepQuantizer):
    def get_activation_fake_quantize_config(self) -> FakeQuantizeConfigBase | None:
        """How activations are rounded."""
        return None

    def get_weight_fake_quantize_config(self) -> FakeQuantizeConfigBase | None:
        """How weights are rounded."""
        return None


class Int8DynActInt4WeightQATQuantizer(_LegacyQATQuantizer):
    """Linear layers with int8 inputs and weights of 4 bits.

    Args:
        padding_allowed: layers whose width is no multiple of ``groupsize`` raise ValueError instead of being left as they are.
    """

    def __init__(
        self, groupsize: int = 256, padding_allowed: bool = False, precision: Any = _C.float32, scales_precision: Any = _C.float32
    ) -> None:
        self.groupsize, self.padding_allowed = groupsize, padding_allowed
        self.precision, self.scales_precision = precision, scales_precision
        self.activation_scales_precision = _C.float32

    def prepare(self, model: Module, *_args: Any, **_kwargs: Any) -> Module:
        """Replaces linear layers."""

        def make(child: Linear) -> Linear:
            made = Int8DynActInt4WeightQATLinear(
                child.in_features, child.out_features, child.bias is not None, child.weight.device, self.groupsize, self.precision,
                self.scales_precision,
            )  # fmt: skip
            return _with_parameters(made, child)

        def accept(child: Module) -> bool:
            return isinstance(child, Linear) and (child.in_features % self.groupsize == 0 or self.padding_allowed)

        _replace(model, accept, make)
        return model

    def convert(self, model: Module, *_args: Any, **_kwargs: Any) -> Module:
        """Replaces the trained layers by layers with weights of int8 that have 4 bits."""
        _replace(model, lambda child: isinstance(child, Int8DynActInt4WeightQATLinear), self._converted)
        return model

    @no_grad()
    def _converted(self, child: Int8DynActInt4WeightQATLinear) -> Module:
        config, weight = child.weight_fake_quantizer.config, child.weight
        made = Int8DynActInt4WeightLinear(
            child.in_features, child.out_features, child.bias is not None, weight.device, groupsize=config.group_size,
            precision=weight.dtype, scales_precision=config.scale_precision,
        )  # fmt: skip
        block_size = (1, config.group_size)
        scale, zero_point = choose_qparams_affine(
            weight, MappingType.SYMMETRIC, block_size, _C.int8, -8, 7, None, config.scale_precision, config.zero_point_precision
        )
        made.weight = quantize_affine(weight, block_size, scale, zero_point, _C.int8, -8, 7)
        made.scales, made.zeros = scale.reshape(made.scales.shape), zero_point.reshape(made.zeros.shape)
        if child.bias is not None:
            made.bias = child.bias
        return made

    def get_activation_fake_quantize_config(self) -> FakeQuantizeConfigBase | None:
        """How activations are rounded."""
        return _activation_config(self.activation_scales_precision)

    def get_weight_fake_quantize_config(self) -> FakeQuantizeConfigBase | None:
        """How weights are rounded."""
        return _weight_config_8da4w(self.groupsize, self.scales_precision)


class Int4WeightOnlyQATQuantizer(_LegacyQATQuantizer):
    """Linear layers without bias, with weights of 4 bits."""

    def __init__(
        self, groupsize: int = 256, inner_k_tiles: int | None = 8, precision: Any = _C.bfloat16, scales_precision: Any = _C.bfloat16
    ) -> None:
        if inner_k_tiles not in (2, 4, 8) or groupsize not in (32, 64, 128, 256):
            raise AssertionError(f"expected inner_k_tiles of 2, 4 or 8 and groups of 32 to 256, got {inner_k_tiles} and {groupsize}")
        self.groupsize, self.inner_k_tiles, self.precision, self.scales_precision = groupsize, inner_k_tiles, precision, scales_precision

    def prepare(self, model: Module, *_args: Any, **_kwargs: Any) -> Module:
        """Replaces linear layers. Raises ValueError for one whose width is no multiple of a group and of 16 inner_k_tiles."""

        def make(child: Linear) -> Linear:
            made = Int4WeightOnlyQATLinear(
                child.in_features, child.out_features, False, child.weight.device, self.groupsize, self.inner_k_tiles, self.precision,
                self.scales_precision,
            )  # fmt: skip
            return _with_parameters(made, child)

        _replace(model, lambda child: isinstance(child, Linear) and child.bias is None, make)
        return model

    def convert(self, model: Module, *_args: Any, **_kwargs: Any) -> Module:
        """Replaces the trained layers by layers with packed weights."""
        _replace(model, lambda child: isinstance(child, Int4WeightOnlyQATLinear), self._converted)
        return model

    @no_grad()
    def _converted(self, child: Int4WeightOnlyQATLinear) -> Module:
        config, weight = child.weight_fake_quantizer.config, child.weight
        group = config.group_size
        made = WeightOnlyInt4Linear(
            child.in_features, child.out_features, False, weight.device, groupsize=group, inner_k_tiles=child.inner_k_tiles,
            precision=weight.dtype, scales_precision=config.scale_precision,
        )  # fmt: skip
        scale, zero_point = choose_qparams_affine_tinygemm(weight, (1, group), 0, 15, 1e-6)
        scale, zero_point = scale.to(_C.bfloat16), zero_point.to(_C.bfloat16)
        ints = quantize_affine_tinygemm(weight, (1, group), scale, zero_point)
        made.set_weight(ints, scale.reshape(weight.shape[0], -1), zero_point.reshape(weight.shape[0], -1))
        return made

    def get_weight_fake_quantize_config(self) -> FakeQuantizeConfigBase | None:
        """How weights are rounded."""
        return _weight_config_4w(self.groupsize, self.scales_precision)


class Float8ActInt4WeightQATQuantizer(_LegacyQATQuantizer):
    """Linear layers with float8 inputs, per row, and weights of 4 bits. There is no conversion, as in torchao.

    Args:
        group_size: None: one scale per row.
    """

    def __init__(self, group_size: int | None = 64, scale_precision: Any = _C.bfloat16) -> None:
        self._activation_config = Float8FakeQuantizeConfig(_C.float8_e4m3fn, PerRow())
        self._weight_config = IntxFakeQuantizeConfig(
            _small_integers.int4, "per_channel" if group_size is None else "per_group", group_size=group_size, is_symmetric=True,
            scale_precision=scale_precision,
        )  # fmt: skip

    def prepare(self, model: Module, *_args: Any, **_kwargs: Any) -> Module:
        """Replaces linear layers."""
        _replace(
            model,
            lambda child: isinstance(child, Linear),
            lambda child: FakeQuantizedLinear.from_linear(child, self._activation_config, self._weight_config),
        )
        return model

    def get_activation_fake_quantize_config(self) -> FakeQuantizeConfigBase | None:
        """How activations are rounded."""
        return self._activation_config

    def get_weight_fake_quantize_config(self) -> FakeQuantizeConfigBase | None:
        """How weights are rounded."""
        return self._weight_config
