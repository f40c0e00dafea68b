"""Descriptions of how the tensors of a graph are quantized, and the base class of quantizers."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, Callable, Union

from ....fx import GraphModule, Node

__all__ = [
    "DerivedQuantizationSpec", "EdgeOrNode", "FixedQParamsQuantizationSpec", "QuantizationAnnotation", "QuantizationSpec",
    "QuantizationSpecBase", "Quantizer", "SharedQuantizationSpec",
]  # fmt: skip

Q_ANNOTATION_KEY = "quantization_annotation"  # in Node.meta

# A place of a graph where a tensor is quantized: the input of a node, as (producer, node), or the output of a node.
EdgeOrNode = Union[tuple[Node, Node], Node]


class QuantizationSpecBase(ABC):  # noqa: B024 - PyTorch's class has no methods either
    """The base class of descriptions of how one tensor is quantized."""


@dataclasses.dataclass(eq=True, frozen=True)
class QuantizationSpec(QuantizationSpecBase):
    """A tensor whose scale and zero point an observer determines.

    Args:
        dtype: of the integers, such as torch.int8.
        observer_or_fake_quant_ctr: a class of observers or FakeQuantize modules, or its ``with_args(...)``.
        quant_min, quant_max: the smallest and largest integer.
        qscheme: per tensor or per channel, symmetric or affine.
        ch_axis: the dimension of the channels.
        is_dynamic: the scale is computed from each input when the model runs.
    """

    dtype: Any
    observer_or_fake_quant_ctr: Any
    quant_min: int | None = None
    quant_max: int | None = None
    qscheme: Any = None
    ch_axis: int | None = None
    is_dynamic: bool = False

    def __post_init__(self) -> None:
        if self.quant_min is not None and self.quant_max is not None and self.quant_min > self.quant_max:
            raise ValueError(f"quant_min {self.quant_min} must be <= quant_max {self.quant_max}.")
        if self.ch_axis is not None and self.ch_axis < 0:
            raise ValueError("Ch_axis is < 0.")


@dataclasses.dataclass(eq=True, frozen=True)
class FixedQParamsQuantizationSpec(QuantizationSpecBase):
    """A tensor whose scale and zero point are known, such as the result of sigmoid."""

    dtype: Any
    scale: float
    zero_point: int
    quant_min: int | None = None
    quant_max: int | None = None
    qscheme: Any = None
    is_dynamic: bool = False


@dataclasses.dataclass(eq=True, frozen=True)
class SharedQuantizationSpec(QuantizationSpecBase):
    """A tensor with the scale and zero point of another tensor of the graph."""

    edge_or_node: EdgeOrNode


@dataclasses.dataclass(eq=True, frozen=True)
class DerivedQuantizationSpec(QuantizationSpecBase):
    """A tensor whose scale and zero point a function computes from the observers of other tensors, such as a bias."""

    derived_from: list[EdgeOrNode]
    derive_qparams_fn: Callable
    dtype: Any
    quant_min: int | None = None
    quant_max: int | None = None
    qscheme: Any = None
    ch_axis: int | None = None
    is_dynamic: bool = False


@dataclasses.dataclass
class QuantizationAnnotation:
    """How the inputs and the output of a node are quantized: ``node.meta["quantization_annotation"]``.

    Args:
        input_qspec_map: a description by the node that produces the input; None: not quantized.
        allow_implicit_sharing: an input uses the observer of its producer's output if both are described alike.
    """

    input_qspec_map: dict[Node, QuantizationSpecBase | None] = dataclasses.field(default_factory=dict)
    output_qspec: QuantizationSpecBase | None = None
    allow_implicit_sharing: bool = True
    _annotated: bool = False


class Quantizer(ABC):
    """Decides which tensors of a graph are quantized, and how."""

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        """Changes the graph before it is annotated. Returns the model."""
        return model

    @abstractmethod
    def annotate(self, model: GraphModule) -> GraphModule:
        """Sets ``meta["quantization_annotation"]`` of nodes. Returns the model."""

    @abstractmethod
    def validate(self, model: GraphModule) -> None:
        """Raises an error if the target cannot run the annotated graph."""

    def prepare_obs_or_fq_callback(  # noqa: B027 - optional
        self, model: GraphModule, edge_or_node_to_obs_or_fq: dict[EdgeOrNode, Any]
    ) -> None:
        """Called with the observers before they are inserted; it may replace them in the dictionary."""
