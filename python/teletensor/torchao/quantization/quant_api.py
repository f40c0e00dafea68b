"""torchao.quantization.quant_api: quantize_() and its configurations."""

from __future__ import annotations

import dataclasses
import re
import types
from collections import OrderedDict
from typing import Any, Callable

from ... import _C, _small_integers
from ..._grad_mode import no_grad
from ...nn import Linear, Module, Parameter
from ...nn.modules.linear import NonDynamicallyQuantizableLinear
from ..core.config import AOBaseConfig
from ..utils import TorchAOBaseTensor
from .granularity import Granularity, PerAxis, PerBlock, PerGroup, PerRow, PerTensor
from .quant_primitives import MappingType
from .quantize_.workflows.float8.float8_tensor import Float8MMConfig, Float8Tensor, QuantizeTensorToFloat8Kwargs
from .quantize_.workflows.int4.int4_tensor import Int4Tensor
from .quantize_.workflows.int8.int8_tensor import Int8Tensor, QuantizeTensorToInt8Kwargs
from .quantize_.workflows.intx.intx_unpacked_to_int8_tensor import IntxUnpackedToInt8Tensor
from .transform_module import handler_of, register_quantize_module_handler

__all__ = [
    "Float8DynamicActivationFloat8WeightConfig", "Float8MMConfig", "Float8WeightOnlyConfig", "FqnToConfig", "Int4WeightOnlyConfig",
    "Int8DynamicActivationInt4WeightConfig", "Int8DynamicActivationInt8WeightConfig", "Int8DynamicActivationIntxWeightConfig",
    "Int8StaticActivationInt8WeightConfig", "Int8WeightOnlyConfig", "IntxWeightOnlyConfig", "ModuleFqnToConfig",
    "float8_dynamic_activation_float8_weight", "float8_weight_only", "int4_weight_only", "int8_dynamic_activation_int4_weight",
    "int8_dynamic_activation_int8_weight", "int8_weight_only", "quantize_",
]  # fmt: skip


_UNNAMED = object()  # what FqnToConfig does not name


def _is_linear(mod: Module, *_: Any) -> bool:
    """Whether a module is a linear layer whose weight is not quantized yet; not the last one of MultiheadAttention."""
    if not isinstance(mod, Linear) or isinstance(mod, NonDynamicallyQuantizableLinear):
        return False
    return getattr(mod, "weight", None) is not None and not isinstance(mod.weight, TorchAOBaseTensor)


def quantize_(
    model: Module, config: AOBaseConfig, filter_fn: Callable[[Module, str], bool] | None = _is_linear, device: Any = None
) -> None:
    """Quantizes the weights of a model's linear layers, or of the modules that a filter selects. Changes the model.

    Args:
        config: such as ``Int8WeightOnlyConfig()``.
        filter_fn: of a module and its name. With FqnToConfig it must be None.
        device: where the model is moved first.

    Raises:
        AssertionError: config is not a configuration.
    """
    if isinstance(config, FqnToConfig):
        if filter_fn is not None:
            raise ValueError(
                "Custom filter_fn and FqnToConfig were both specified. Only filter_fn=None is supported when FqnToConfig is specified."
            )
        chosen = [(name, module, *found) for name, module in model.named_modules() for found in config.configs_of(name, module)]
    elif isinstance(config, AOBaseConfig):
        accept = filter_fn or _is_linear
        chosen, inside = [], ()
        for name, module in model.named_modules():
            if inside and name.startswith(inside):  # of a module that was chosen itself
                continue
            if accept(module, name):
                chosen.append((name, module, config, None))
                inside = (*inside, f"{name}." if name else "")
                if not name:
                    break
    else:
        raise AssertionError(f"expected a configuration such as Int8WeightOnlyConfig(), got {config!r}")
    if device is not None:
        model.to(device=device)
    for _, _, found, _ in chosen:
        if (version := getattr(found, "version", 2)) != 2 and not isinstance(found, Int8StaticActivationInt8WeightConfig):
            raise AssertionError(f"Unexpected version: {version}")  # older versions made weights of other classes
    for name, module, found, parameter in chosen:
        replacement = handler_of(type(found))(module, found, **({} if parameter is None else {"parameter_name": parameter}))
        if replacement is not module and name:
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, replacement)


class _WithInductor(AOBaseConfig):
    """``set_inductor_config`` sets options of PyTorch's compiler, which does not exist here. The order of fields is torchao's."""


def _replaced(module: Module, weight: Any, name: str = "weight") -> Module:
    """The module with another weight, which its text names."""
    setattr(module, name, Parameter(weight, requires_grad=False))
    if isinstance(weight, TorchAOBaseTensor):
        original = type(module).extra_repr

        def extra_repr(self: Module) -> str:
            return f"{original(self)}, {name}={type(getattr(self, name)).__name__}(shape={tuple(getattr(self, name).shape)})"

        module.extra_repr = types.MethodType(extra_repr, module)
    return module


@dataclasses.dataclass
class Int8WeightOnlyConfig(_WithInductor):
    """Weights in int8, symmetric.

    Args:
        group_size: None; use ``granularity=PerGroup(n)``.
        granularity: PerRow() for one scale per output, PerTensor(), or PerGroup(n).
    """

    group_size: int | None = None
    granularity: Granularity | None = dataclasses.field(default_factory=PerRow)
    set_inductor_config: bool = True
    version: int = 2

    def __post_init__(self) -> None:
        if self.group_size is not None:
            raise AssertionError(f"Only support version 2 with group_size=None, got {self.group_size}. Use PerGroup({self.group_size})")
        if not isinstance(self.granularity, (PerTensor, PerRow, PerGroup)):
            raise AssertionError(f"granularity must be PerTensor, PerRow, or PerGroup, but got {self.granularity}")


@register_quantize_module_handler(Int8WeightOnlyConfig)
@no_grad()
def _int8_weight_only(module: Module, config: Int8WeightOnlyConfig, *, parameter_name: str = "weight") -> Module:
    weight = getattr(module, parameter_name)
    return _replaced(module, Int8Tensor.from_hp(weight, granularity=config.granularity), parameter_name)


@dataclasses.dataclass
class Int4WeightOnlyConfig(_WithInductor):
    """Weights in 4 bits with a scale and a zero point per group of a row. Layers whose width is not a multiple are unchanged.

    Args:
        group_size: the elements of a group.
        int4_packing_format: "plain"; the other formats of torchao are those of kernels for GPUs.
        int4_choose_qparams_algorithm: "tinygemm".
    """

    group_size: int = 128
    set_inductor_config: bool = True
    int4_packing_format: str = "plain"
    int4_choose_qparams_algorithm: str = "tinygemm"
    int4_tile_packed_ntile: int = 8
    version: int = 2

    def __post_init__(self) -> None:
        formats = {"plain": self.int4_packing_format, "tinygemm": self.int4_choose_qparams_algorithm}
        for expected, given in formats.items():
            if getattr(given, "value", given) != expected:
                raise NotImplementedError(f"[Int4WeightOnlyConfig] expected {expected!r}, got {given!r}: the others exist for GPUs only")


@register_quantize_module_handler(Int4WeightOnlyConfig)
@no_grad()
def _int4_weight_only(module: Module, config: Int4WeightOnlyConfig, *, parameter_name: str = "weight") -> Module:
    weight = getattr(module, parameter_name)
    if weight.shape[-1] % config.group_size:
        return module
    block_size = [1] * (weight.dim() - 1) + [config.group_size]
    return _replaced(module, Int4Tensor.from_hp(weight, block_size), parameter_name)


@dataclasses.dataclass
class Int8DynamicActivationInt8WeightConfig(_WithInductor):
    """Weights in int8; activations in int8 too, with scales of each input. The products are those of integers.

    Args:
        act_mapping_type: SYMMETRIC or ASYMMETRIC.
        granularity: PerRow() or PerTensor(), for both or for [activations, weights].
        reduce_range: 7 bits, for CPUs without VNNI.
    """

    act_mapping_type: MappingType | None = MappingType.SYMMETRIC
    weight_only_decode: bool = False
    granularity: Any = dataclasses.field(default_factory=PerRow)
    set_inductor_config: bool = True
    version: int = 2
    reduce_range: bool | None = False

    def __post_init__(self) -> None:
        _checked_int8(self.granularity, self.act_mapping_type)
        if self.weight_only_decode:
            raise NotImplementedError("[Int8DynamicActivationInt8WeightConfig] weight_only_decode: torchao ignores it since version 2")


def _checked_int8(granularity: Any, mapping_type: Any) -> tuple[Granularity, Granularity]:
    pair = Int8Tensor._normalize_granularity(granularity)
    for found in pair:
        if not isinstance(found, (PerTensor, PerRow)):
            raise ValueError(f"Unsupported granularity type: {type(found)}. Only PerTensor and PerRow are supported.")
    for found in pair:
        if isinstance(found, PerRow) and found.dim != -1:
            raise ValueError(f"Only PerRow(dim=-1) is supported for activation quantization, got {found}")
    if mapping_type not in (MappingType.SYMMETRIC, MappingType.ASYMMETRIC):
        raise AssertionError("`act_mapping_type` must be MappingType.SYMMETRIC or MappingType.ASYMMETRIC")
    return pair


@register_quantize_module_handler(Int8DynamicActivationInt8WeightConfig)
@no_grad()
def _int8_dynamic(module: Module, config: Int8DynamicActivationInt8WeightConfig, *, parameter_name: str = "weight") -> Module:
    activation, granularity = _checked_int8(config.granularity, config.act_mapping_type)
    options = QuantizeTensorToInt8Kwargs(activation, config.act_mapping_type, bool(config.reduce_range))
    weight = Int8Tensor.from_hp(
        getattr(module, parameter_name), granularity, act_quant_kwargs=options, reduce_range=bool(config.reduce_range)
    )
    return _replaced(module, weight, parameter_name)


@dataclasses.dataclass
class Int8StaticActivationInt8WeightConfig(_WithInductor):
    """Weights in int8; activations in int8 with a given scale.

    Args:
        act_quant_scale: of shape (1, 1) per tensor; act_quant_zero_point: for ASYMMETRIC, int8.
    """

    act_quant_scale: Any = None
    act_quant_zero_point: Any = None
    granularity: Any = dataclasses.field(default_factory=PerRow)
    act_mapping_type: MappingType | None = MappingType.SYMMETRIC
    set_inductor_config: bool = True
    version: int = 1
    reduce_range: bool | None = False

    def __post_init__(self) -> None:
        _checked_int8(self.granularity, self.act_mapping_type)
        if self.act_quant_zero_point is not None and self.act_mapping_type != MappingType.ASYMMETRIC:
            raise ValueError("act_quant_zero_point needs act_mapping_type=MappingType.ASYMMETRIC")


@register_quantize_module_handler(Int8StaticActivationInt8WeightConfig)
@no_grad()
def _int8_static(module: Module, config: Int8StaticActivationInt8WeightConfig, *, parameter_name: str = "weight") -> Module:
    if config.act_quant_scale is None:
        raise AssertionError("Int8StaticActivationInt8WeightConfig requires act_quant_scale")
    activation, granularity = _checked_int8(config.granularity, config.act_mapping_type)
    if not isinstance(activation, PerTensor) and config.act_quant_scale.numel() == 1:
        activation = PerTensor()
    options = QuantizeTensorToInt8Kwargs(activation, config.act_mapping_type, bool(config.reduce_range))
    weight = Int8Tensor.from_hp(
        getattr(module, parameter_name), granularity, act_quant_kwargs=options, act_quant_scale=config.act_quant_scale,
        act_quant_zero_point=config.act_quant_zero_point, reduce_range=bool(config.reduce_range),
    )  # fmt: skip
    return _replaced(module, weight, parameter_name)


def _is_small(dtype: Any) -> bool:
    return dtype == _C.int8 or (isinstance(dtype, _small_integers.SmallIntegerDType) and dtype.is_signed)


def _checked_intx(dtype: Any, granularity: Any) -> None:
    if not _is_small(dtype):
        raise AssertionError(f"weight_dtype must be torch.intx, where 1 <= x <= 8, but got {dtype}")
    if not isinstance(granularity, (PerAxis, PerGroup)) or (isinstance(granularity, PerAxis) and granularity.axis != 0):
        raise AssertionError(f"granularity must be PerAxis(0) or PerGroup, but got {granularity}")


@dataclasses.dataclass
class IntxWeightOnlyConfig(AOBaseConfig):
    """Weights of 1 to 8 bits, stored in int8.

    Args:
        weight_dtype: torch.int1 to torch.int8.
        granularity: PerAxis(0) or PerGroup(n).
        scale_dtype: of the scales, by default the weight's.
        intx_packing_format: "unpacked_to_int8".
    """

    weight_dtype: Any = _C.int8
    granularity: Granularity = dataclasses.field(default_factory=lambda: PerAxis(0))
    mapping_type: MappingType = MappingType.SYMMETRIC
    scale_dtype: Any = None
    intx_packing_format: str = "unpacked_to_int8"
    version: int = dataclasses.field(default=2, kw_only=True)

    def __post_init__(self) -> None:
        _checked_intx(self.weight_dtype, self.granularity)
        _checked_packing("IntxWeightOnlyConfig", self.intx_packing_format)


def _checked_packing(name: str, packing: Any) -> None:
    if getattr(packing, "value", packing) != "unpacked_to_int8":
        raise NotImplementedError(f"[{name}] expected intx_packing_format 'unpacked_to_int8', got {packing!r}: others are of ARM kernels")


def _intx(
    weight: Any, dtype: Any, granularity: Any, mapping_type: Any, scale_dtype: Any, activation: str | None,
    custom_scale: Any = None, custom_zero_point: Any = None,
) -> Any:  # fmt: skip
    if weight.dim() not in (2, 4):
        raise ValueError(f"IntxWeightOnlyConfig only works for 2-d and 4-d Tensors, got: {weight.dim()}")
    group = granularity.group_size if isinstance(granularity, PerGroup) else weight.shape[1]
    block_size = (1, group) if weight.dim() == 2 else (1, group, 1, 1)
    if custom_scale is not None:
        return IntxUnpackedToInt8Tensor.from_hp(
            weight, block_size, dtype, mapping_type=mapping_type, activation_quantization=activation, custom_scale=custom_scale,
            custom_zero_point=custom_zero_point,
        )  # fmt: skip
    found = IntxUnpackedToInt8Tensor.from_hp(
        weight, block_size, dtype, mapping_type=mapping_type, activation_quantization=activation
    )
    if scale_dtype is not None and scale_dtype != weight.dtype:
        scale = found.scale.to(scale_dtype)
        found = IntxUnpackedToInt8Tensor.from_hp(
            weight, block_size, dtype, activation_quantization=activation, custom_scale=scale, custom_zero_point=found.zero_point
        )
    return found


@register_quantize_module_handler(IntxWeightOnlyConfig)
@no_grad()
def _intx_weight_only(
    module: Module, config: IntxWeightOnlyConfig, *, parameter_name: str = "weight", custom_scale: Any = None,
    custom_zero_point: Any = None,
) -> Module:  # fmt: skip
    weight = getattr(module, parameter_name)
    found = _intx(
        weight, config.weight_dtype, config.granularity, config.mapping_type, config.scale_dtype, None, custom_scale, custom_zero_point
    )
    return _replaced(module, found, parameter_name)


@dataclasses.dataclass
class Int8DynamicActivationIntxWeightConfig(AOBaseConfig):
    """Weights of 1 to 8 bits, stored in int8; activations rounded to int8 per row, asymmetric.

    Args:
        weight_dtype: torch.int1 to torch.int8.
        weight_granularity: PerAxis(0) or PerGroup(n).
    """

    weight_dtype: Any = _C.int8
    weight_granularity: Granularity = dataclasses.field(default_factory=lambda: PerGroup(32))
    weight_mapping_type: MappingType = MappingType.SYMMETRIC
    weight_scale_dtype: Any = None
    act_mapping_type: MappingType = MappingType.ASYMMETRIC
    intx_packing_format: str = "unpacked_to_int8"
    version: int = dataclasses.field(default=2, kw_only=True)

    def __post_init__(self) -> None:
        _checked_intx(self.weight_dtype, self.weight_granularity)
        _checked_packing("Int8DynamicActivationIntxWeightConfig", self.intx_packing_format)
        if self.act_mapping_type != MappingType.ASYMMETRIC:
            raise AssertionError(f"act_mapping_type must be MappingType.ASYMMETRIC, but got {self.act_mapping_type}")


@register_quantize_module_handler(Int8DynamicActivationIntxWeightConfig)
@no_grad()
def _int8_dynamic_intx(
    module: Module, config: Int8DynamicActivationIntxWeightConfig, *, parameter_name: str = "weight", custom_scale: Any = None,
    custom_zero_point: Any = None,
) -> Module:  # fmt: skip
    weight = getattr(module, parameter_name)
    found = _intx(
        weight, config.weight_dtype, config.weight_granularity, config.weight_mapping_type, config.weight_scale_dtype,
        "int8_asym_per_token", custom_scale, custom_zero_point,
    )  # fmt: skip
    return _replaced(module, found, parameter_name)


@dataclasses.dataclass
class Int8DynamicActivationInt4WeightConfig(AOBaseConfig):
    """torchao's older name of Int8DynamicActivationIntxWeightConfig(torch.int4, PerGroup(group_size))."""

    group_size: int = 32
    mapping_type: MappingType = MappingType.SYMMETRIC
    act_mapping_type: MappingType = MappingType.ASYMMETRIC


@register_quantize_module_handler(Int8DynamicActivationInt4WeightConfig)
def _int8_dynamic_int4(module: Module, config: Int8DynamicActivationInt4WeightConfig, *, parameter_name: str = "weight") -> Module:
    intx = Int8DynamicActivationIntxWeightConfig(
        _small_integers.int4, PerGroup(config.group_size), config.mapping_type, act_mapping_type=config.act_mapping_type
    )
    return _int8_dynamic_intx(module, intx, parameter_name=parameter_name)


@dataclasses.dataclass
class Float8WeightOnlyConfig(_WithInductor):
    """Weights in float8; the products are those of the activations' dtype.

    Args:
        weight_dtype: a float8 dtype.
        granularity: PerRow(), PerTensor() or PerGroup(n).
    """

    weight_dtype: Any = _C.float8_e4m3fn
    set_inductor_config: bool = True
    version: int = 2
    granularity: Any = None

    def __post_init__(self) -> None:
        self.granularity = PerRow() if self.granularity is None else self.granularity
        if not isinstance(self.granularity, (PerTensor, PerRow, PerGroup)):
            raise AssertionError(f"granularity must be PerTensor, PerRow, or PerGroup, got {type(self.granularity)}")


@register_quantize_module_handler(Float8WeightOnlyConfig)
@no_grad()
def _float8_weight_only(module: Module, config: Float8WeightOnlyConfig, *, parameter_name: str = "weight") -> Module:
    weight = getattr(module, parameter_name)
    return _replaced(module, Float8Tensor.from_hp(weight, config.weight_dtype, config.granularity), parameter_name)


@dataclasses.dataclass
class Float8DynamicActivationFloat8WeightConfig(_WithInductor):
    """Weights and activations in float8, with scales of each input.

    Args:
        activation_dtype, weight_dtype: float8 dtypes.
        granularity: PerTensor() (the default) or PerRow(), for both or for [activations, weights]; or [PerBlock([1, 128]),
            PerBlock([128, 128])].
        activation_value_lb, activation_value_ub: limits of the activations' largest value.
    """

    activation_dtype: Any = _C.float8_e4m3fn
    weight_dtype: Any = _C.float8_e4m3fn
    granularity: Any = None
    _: dataclasses.KW_ONLY
    mm_config: Float8MMConfig | None = None
    activation_value_lb: float | None = None
    activation_value_ub: float | None = None
    set_inductor_config: bool = True
    version: int = 2

    def __post_init__(self) -> None:
        given = PerTensor() if self.granularity is None else self.granularity
        pair = list(given) if isinstance(given, (list, tuple)) else [given, given]
        alike = len(pair) == 2 and type(pair[0]) is type(pair[1]) and isinstance(pair[0], (PerTensor, PerRow))
        sizes = [tuple(g.block_size) if isinstance(g, PerBlock) else None for g in pair]
        if not alike and sizes != [(1, 128), (128, 128)]:
            raise ValueError(
                f"Invalid granularity specification: {given}, only PerTensor or PerRow for both, or PerBlock of [1, 128] and [128, 128]"
            )
        self.granularity = pair
        self.mm_config = self.mm_config or Float8MMConfig(use_fast_accum=True)


@register_quantize_module_handler(Float8DynamicActivationFloat8WeightConfig)
@no_grad()
def _float8_dynamic(module: Module, config: Float8DynamicActivationFloat8WeightConfig, *, parameter_name: str = "weight") -> Module:
    weight = getattr(module, parameter_name)
    options = QuantizeTensorToFloat8Kwargs(
        config.activation_dtype, config.granularity[0], hp_value_lb=config.activation_value_lb, hp_value_ub=config.activation_value_ub
    )
    found = Float8Tensor.from_hp(
        weight, config.weight_dtype, config.granularity[1], mm_config=config.mm_config, act_quant_kwargs=options
    )
    return _replaced(module, found, parameter_name)


@dataclasses.dataclass
class FqnToConfig(AOBaseConfig):
    """Configurations by the names of modules or parameters.

    ``re:`` starts a regular expression, "_default" is the configuration of other linear layers, and None: not quantized. Names
    come before expressions, and parameters before modules.
    """

    fqn_to_config: OrderedDict = dataclasses.field(default_factory=OrderedDict)
    module_fqn_to_config: OrderedDict = dataclasses.field(default_factory=OrderedDict)  # torchao's older name of the same
    version: int = 1

    def __post_init__(self) -> None:
        if self.fqn_to_config and self.module_fqn_to_config and self.fqn_to_config != self.module_fqn_to_config:
            raise ValueError("`fqn_to_config` and `module_fqn_to_config` are both specified and are not equal!")
        self.fqn_to_config = self.module_fqn_to_config = self.fqn_to_config or self.module_fqn_to_config

    def configs_of(self, name: str, module: Module) -> list[tuple[AOBaseConfig, str | None]]:
        """The configurations of a module, or of its parameters with their names."""
        parameters = {p: f"{name}.{p}" if name else p for p in module._parameters}
        for find in (self.fqn_to_config.get, self._matching):
            keys = {p: find(full, _UNNAMED) for p, full in parameters.items()}
            found = [(config, p) for p, config in keys.items() if config is not _UNNAMED]
            if not found and (config := find(name, _UNNAMED)) is not _UNNAMED:
                found = [(config, None)]
            if found:
                return [(config, p) for config, p in found if config is not None]
        config = self.fqn_to_config.get("_default") if _is_linear(module) else None
        return [] if config is None else [(config, None)]

    def _matching(self, name: str, default: Any) -> Any:
        """The configuration of the first expression that matches a name."""
        patterns = (key for key in self.fqn_to_config if key.startswith("re:") and re.fullmatch(key[3:], name))
        return self.fqn_to_config.get(next(patterns, ""), default)


ModuleFqnToConfig = FqnToConfig
# Older names, functions in torchao.
int8_weight_only, int4_weight_only, float8_weight_only = Int8WeightOnlyConfig, Int4WeightOnlyConfig, Float8WeightOnlyConfig
int8_dynamic_activation_int8_weight = Int8DynamicActivationInt8WeightConfig
int8_dynamic_activation_int4_weight = Int8DynamicActivationInt4WeightConfig
float8_dynamic_activation_float8_weight = Float8DynamicActivationFloat8WeightConfig
