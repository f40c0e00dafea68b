"""Enumerations of quantization: types, mappings, and which elements share a scale."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..._lazy import set_module


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


class TorchAODType(enum.Enum):
    """Integers of 1 to 7 bits, which torchao stores in bytes."""

    INT1 = enum.auto()
    INT2 = enum.auto()
    INT3 = enum.auto()
    INT4 = enum.auto()
    INT5 = enum.auto()
    INT6 = enum.auto()
    INT7 = enum.auto()


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


def default_eval_fn(model: Callable, calib_data: Sequence) -> None:
    """Calls the model with the first element of each pair."""
    for data, _target in calib_data:
        model(data)


set_module(
    "teletensor.ao.quantization.observer",
    Granularity, MappingType, PerAxis, PerBlock, PerGroup, PerRow, PerTensor, PerToken, TorchAODType, ZeroPointDomain,
)  # fmt: skip
set_module("teletensor.ao.quantization.quant_type", QuantType)
