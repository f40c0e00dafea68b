"""torchao.quantization.granularity: which elements share a scale."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Granularity", "PerAxis", "PerBlock", "PerGroup", "PerRow", "PerTensor", "PerToken"]


@dataclass(frozen=True)
class Granularity:
    """Which elements share a scale."""


@dataclass(frozen=True)
class PerTensor(Granularity):
    """All elements."""


@dataclass(frozen=True)
class PerAxis(Granularity):
    """One scale per index of a dimension."""

    axis: int


@dataclass(frozen=True)
class PerBlock(Granularity):
    """Blocks of these sizes."""

    block_size: tuple[int, ...]


@dataclass(frozen=True)
class PerGroup(Granularity):
    """Groups of elements of the last dimension."""

    group_size: int


@dataclass(frozen=True)
class PerRow(Granularity):
    """The elements of one dimension, by default the last."""

    dim: int = -1


@dataclass(frozen=True)
class PerToken(Granularity):
    """The elements of the last dimension, for activations."""
