"""Configurations and enumerations of quantization."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional


class QuantType(enum.IntEnum):
    """How a module is quantized."""

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3


class MappingType(enum.Enum):
    """How floating-point numbers are mapped to integers."""

    SYMMETRIC = enum.auto()
    SYMMETRIC_NO_CLIPPING_ERR = enum.auto()
    ASYMMETRIC = enum.auto()


class ZeroPointDomain(enum.Enum):
    """The domain of zero points: integers or floating-point numbers."""

    INT = enum.auto()
    FLOAT = enum.auto()
    NONE = enum.auto()


@dataclass(frozen=True)
class Granularity:
    """Which elements share quantization parameters."""


@dataclass(frozen=True)
class PerTensor(Granularity):
    """All elements."""


@dataclass(frozen=True)
class PerAxis(Granularity):
    """One set of parameters per index of a dimension."""

    axis: int


@dataclass(frozen=True)
class PerBlock(Granularity):
    """The elements of blocks of these sizes."""

    block_size: tuple[int, ...]


@dataclass(frozen=True)
class PerGroup(Granularity):
    """Groups of elements of the last dimension."""

    group_size: int


class PerRow(Granularity):
    """The elements of the last dimension."""


class PerToken(Granularity):
    """The elements of the last dimension, for activations."""


def get_block_size(input_shape: tuple[int, ...], granularity: Granularity) -> tuple[int, ...]:
    """The sizes of the blocks of elements that share quantization parameters."""
    if not isinstance(granularity, Granularity):
        raise AssertionError("Please provide an instance of Granularity, not subclass of it")
    if isinstance(granularity, PerTensor):
        return input_shape
    if isinstance(granularity, PerAxis):
        sizes = list(input_shape)
        sizes[granularity.axis] = 1
        return tuple(sizes)
    if isinstance(granularity, (PerRow, PerToken)):
        return (1,) * (len(input_shape) - 1) + (input_shape[-1],)
    if isinstance(granularity, PerGroup):
        return (1,) * (len(input_shape) - 1) + (granularity.group_size,)
    raise ValueError(f"Unsupported Granularity: {granularity}")


class QConfig(NamedTuple):
    """Functions that create the observers of activations and of weights."""

    activation: Any
    weight: Any

    @classmethod
    def create(cls, activation: Any, weight: Any) -> QConfig:
        """A configuration. Raises ValueError for modules instead of functions that create them."""
        from ...nn import Module

        if isinstance(activation, Module) or isinstance(weight, Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. Use MyObserver.with_args(x=1) to override "
                "arguments to constructor if needed"
            )
        return cls(activation, weight)


class QConfigDynamic(QConfig):
    """PyTorch's older class for dynamic quantization."""


QConfigAny = Optional[QConfig]


def qconfig_equals(q1: QConfig | None, q2: QConfig | None) -> bool:
    """Whether two configurations are the same."""
    if q1 is None or q2 is None:
        return q1 is q2
    return _same(q1.activation, q2.activation) and _same(q1.weight, q2.weight)


def _same(a: Any, b: Any) -> bool:
    parts = [getattr(x, "p", x) for x in (a, b)]
    if all(hasattr(p, "func") for p in parts):
        return parts[0].func is parts[1].func and parts[0].args == parts[1].args and parts[0].keywords == parts[1].keywords
    return bool(parts[0] == parts[1])


def default_eval_fn(model: Callable, calib_data: Sequence) -> None:
    """Calls the model with the first element of each pair."""
    for data, _target in calib_data:
        model(data)
