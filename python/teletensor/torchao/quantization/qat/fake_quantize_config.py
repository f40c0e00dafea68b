"""torchao.quantization.qat.fake_quantize_config: how weights and activations are rounded while a model is trained."""

from __future__ import annotations

import abc
from dataclasses import dataclass, field
from typing import Any

from .... import _C
from ...core.config import AOBaseConfig
from ..granularity import Granularity, PerAxis, PerGroup, PerRow, PerTensor, PerToken
from ..quant_api import (
    Float8DynamicActivationFloat8WeightConfig,
    Int4WeightOnlyConfig,
    Int8DynamicActivationIntxWeightConfig,
    IntxWeightOnlyConfig,
)
from ..quant_primitives import MappingType, ZeroPointDomain, bits_of
from .two_step_quantizer import warn_of_older_name

__all__ = [
    "FakeQuantizeConfig", "FakeQuantizeConfigBase", "Float8FakeQuantizeConfig", "Int4WeightFakeQuantizeConfig",
    "IntxFakeQuantizeConfig",
]  # fmt: skip
_FLOAT8 = (_C.float8_e4m3fn, _C.float8_e5m2)


class FakeQuantizeConfigBase(abc.ABC):  # noqa: B024 - torchao's class has no methods either
    """How a tensor is rounded."""


@dataclass
class Float8FakeQuantizeConfig(FakeQuantizeConfigBase):
    """Rounds to float8.

    Args:
        granularity: PerRow() or PerTensor().
        hp_value_lb, hp_value_ub: limits of the largest value, from which the scale is computed.
    """

    dtype: Any = _C.float8_e4m3fn
    granularity: Any = field(default_factory=PerRow)
    hp_value_lb: float | None = None
    hp_value_ub: float | None = None

    def __post_init__(self) -> None:
        if self.dtype not in _FLOAT8:
            raise ValueError(f"{self.dtype} is not a float8 dtype")
        if isinstance(self.granularity, type):
            raise ValueError("Please specify the granularity object instead of the class, e.g. PerRow() instead of PerRow")
        if type(self.granularity) not in (PerRow, PerTensor):
            raise ValueError(f"Expected PerRow or PerTensor granularity, got {self.granularity}")


@dataclass
class Int4WeightFakeQuantizeConfig(FakeQuantizeConfigBase):
    """Rounds weights to 4 bits as Int4WeightOnlyConfig does, or, for float8 activations, first to float8.

    Args:
        activation_dtype: bfloat16 or float8_e4m3fn.
    """

    group_size: int = 128
    activation_dtype: Any = _C.float8_e4m3fn

    def __post_init__(self) -> None:
        if self.activation_dtype not in (_C.float8_e4m3fn, _C.bfloat16):
            raise ValueError(f"Only {_C.float8_e4m3fn} or torch.bfloat16 activation are supported")


def _granularity(given: Any, group_size: int | None) -> Granularity:
    if group_size is not None and given not in ("per_group", None):
        raise ValueError(f"`group_size` conflicts with granularity '{given}'")
    if isinstance(given, Granularity):
        if not isinstance(given, (PerToken, PerAxis, PerGroup)):
            raise ValueError(f"Granularity '{given}' is not supported")
        if isinstance(given, PerAxis) and given.axis != 0:
            raise ValueError("Only axis=0 is supported for PerAxis granularity")
        return given
    if given == "per_token":
        return PerToken()
    if given == "per_channel":
        return PerAxis(axis=0)
    if given == "per_group" and group_size is None:
        raise ValueError("Granularity was 'per_group' but no `group_size` was set")
    if given not in ("per_group", None):
        names = ["per_token", "per_channel", "per_group"]
        raise ValueError(f"Unexpected granularity: '{given}', must be one of {names}")
    if group_size is None:
        raise ValueError("At least one of `granularity` or `group_size` must be set")
    return PerGroup(group_size)


@dataclass(init=False)
class IntxFakeQuantizeConfig(FakeQuantizeConfigBase):
    """Rounds to integers of 1 to 8 bits.

    Args:
        dtype: such as torch.int4.
        granularity: PerToken(), PerAxis(0), PerGroup(n), or "per_token", "per_channel", "per_group".
        mapping_type: SYMMETRIC (default) or ASYMMETRIC; or is_symmetric.
        is_dynamic: computes the scales of each input; otherwise those of the first one are kept.
        range_learning: scales and zero points are trained.
        group_size: of "per_group"; is enough without a granularity.
    """

    dtype: Any
    granularity: Granularity
    mapping_type: MappingType
    scale_precision: Any
    zero_point_precision: Any
    zero_point_domain: ZeroPointDomain
    is_dynamic: bool = True
    range_learning: bool = False
    eps: float | None = None

    def __init__(
        self, dtype: Any, granularity: Any = None, mapping_type: MappingType | None = None, scale_precision: Any = _C.float32,
        zero_point_precision: Any = _C.int32, zero_point_domain: ZeroPointDomain = ZeroPointDomain.INT, is_dynamic: bool = True,
        range_learning: bool = False, eps: float | None = None, *, group_size: int | None = None, is_symmetric: bool | None = None,
    ) -> None:  # fmt: skip
        if zero_point_domain is None:
            raise ValueError("Please use ZeroPointDomain.NONE instead of None")
        if bits_of(dtype) is None:
            raise ValueError(f"Unsupported dtype '{dtype}', choose from torch.int1 to torch.int8 and torch.uint1 to torch.uint8")
        if mapping_type is not None and is_symmetric is not None:
            raise ValueError("Cannot set both `mapping_type` and `is_symmetric`")
        if mapping_type is None:
            mapping_type = MappingType.ASYMMETRIC if is_symmetric is False else MappingType.SYMMETRIC
        if mapping_type not in (MappingType.SYMMETRIC, MappingType.ASYMMETRIC):
            raise ValueError(f"MappingType '{mapping_type}' is not supported")
        if is_dynamic and range_learning:
            raise ValueError("`is_dynamic` is not compatible with `range_learning`")
        self.dtype, self.granularity, self.mapping_type = dtype, _granularity(granularity, group_size), mapping_type
        self.scale_precision, self.zero_point_precision = scale_precision, zero_point_precision
        self.zero_point_domain, self.is_dynamic, self.range_learning, self.eps = zero_point_domain, is_dynamic, range_learning, eps
        self.__post_init__()

    def __post_init__(self) -> None:
        """For subclasses."""

    @property
    def group_size(self) -> int:
        """The size of groups. Raises ValueError for other granularities."""
        if isinstance(self.granularity, PerGroup):
            return self.granularity.group_size
        raise ValueError(f"`group_size` is undefined for {self.granularity} granularity")

    @property
    def is_symmetric(self) -> bool:
        """Whether 0 is in the middle of the range."""
        return self.mapping_type == MappingType.SYMMETRIC

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "group_size":
            name, value = "granularity", PerGroup(value)
        elif name == "is_symmetric":
            name, value = "mapping_type", MappingType.SYMMETRIC if value else MappingType.ASYMMETRIC
        super().__setattr__(name, value)


class FakeQuantizeConfig(IntxFakeQuantizeConfig):
    """The older name of IntxFakeQuantizeConfig."""

    def __post_init__(self) -> None:
        warn_of_older_name(self)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _infer_fake_quantize_configs(base_config: AOBaseConfig) -> tuple[FakeQuantizeConfigBase | None, FakeQuantizeConfigBase | None]:
    """How activations and weights are rounded by a configuration for quantize_().

    Raises:
        ValueError: the configuration has no counterpart.
    """
    if isinstance(base_config, Int4WeightOnlyConfig):
        return None, Int4WeightFakeQuantizeConfig(base_config.group_size, _C.bfloat16)
    if isinstance(base_config, Float8DynamicActivationFloat8WeightConfig):
        activation, weight = base_config.granularity
        return (
            Float8FakeQuantizeConfig(
                base_config.activation_dtype, activation, base_config.activation_value_lb, base_config.activation_value_ub
            ),
            Float8FakeQuantizeConfig(base_config.weight_dtype, weight),
        )
    if isinstance(base_config, Int8DynamicActivationIntxWeightConfig):
        _require(bits_of(base_config.weight_dtype) > 1, "Only int2+ is supported")
        _require(base_config.weight_mapping_type == MappingType.SYMMETRIC, "Only symmetric weight mapping is supported")
        _require(base_config.weight_scale_dtype is None, "Specifying weight_scale_dtype is not supported")
        weight = IntxFakeQuantizeConfig(
            base_config.weight_dtype, base_config.weight_granularity, base_config.weight_mapping_type, scale_precision=None
        )
        return IntxFakeQuantizeConfig(_C.int8, "per_token", is_symmetric=False, scale_precision=None), weight
    if isinstance(base_config, IntxWeightOnlyConfig):
        _require(bits_of(base_config.weight_dtype) > 1, "Only int2+ is supported")
        _require(base_config.mapping_type == MappingType.SYMMETRIC, "Only symmetric mapping is supported")
        _require(base_config.scale_dtype is None, "Specifying scale_dtype is not supported")
        return None, IntxFakeQuantizeConfig(
            base_config.weight_dtype, base_config.granularity, base_config.mapping_type, scale_precision=None
        )
    raise ValueError(f"Unexpected base config: {base_config}")
