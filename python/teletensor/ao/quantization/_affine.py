"""AffineQuantizedObserverBase: observers of any granularity, as torchao defines them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ..._C import Tensor
from ..._lazy import set_module
from ...nn import Module
from ._observer_base import with_args
from ._types import Granularity, MappingType, ZeroPointDomain


class AffineQuantizedObserverBase(ABC, Module):
    """An observer whose scales belong to the blocks of a granularity. Subclasses define forward and calculate_qparams.

    Args:
        mapping_type: whether 0 is in the middle of the range.
        target_dtype: of the integers.
        granularity: which elements share a scale.
        quant_min, quant_max, eps: the smallest and largest integer, the smallest scale; None: those of the dtype.
        scale_dtype, zero_point_dtype: None: as computed.
        preserve_zero: whether 0 is represented exactly.
        zero_point_domain: whether zero points are integers or floating-point numbers.
    """

    with_args = classmethod(with_args)

    def __init__(
        self, mapping_type: MappingType, target_dtype: Any, granularity: Granularity, quant_min: int | None = None,
        quant_max: int | None = None, eps: float | None = None, scale_dtype: Any = None, zero_point_dtype: Any = None,
        preserve_zero: bool = True, zero_point_domain: ZeroPointDomain | None = ZeroPointDomain.INT, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        if granularity is None:
            raise AssertionError("granularity is None")
        self.mapping_type, self.target_dtype, self.granularity = mapping_type, target_dtype, granularity
        self.quant_min, self.quant_max, self.eps = quant_min, quant_max, eps
        self.scale_dtype, self.zero_point_dtype, self.preserve_zero = scale_dtype, zero_point_dtype, preserve_zero
        self.zero_point_domain = zero_point_domain
        self.block_size: tuple[int, ...] | None = None
        self.original_dtype: Any = None

    @abstractmethod
    def forward(self, input: Tensor) -> Tensor:
        """Observes a tensor and returns it. Sets block_size and original_dtype."""

    @abstractmethod
    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """(scale, zero point) of the observed values."""

    def convert(self, model: Any, observer_node: Any) -> None:
        """Raises NotImplementedError: graphs are converted by torch.ao.quantization.pt2e."""
        raise NotImplementedError(
            "[AffineQuantizedObserverBase.convert] expected an observer that replaces its node itself, got "
            f"{type(self).__name__} for {observer_node} of {type(model).__name__}"
        )


set_module("teletensor.ao.quantization.observer", AffineQuantizedObserverBase)
