"""An observer whose scale and zero point are computed from those of other observers."""

from __future__ import annotations

from typing import Any, Callable

from .... import _quantized_names as q
from ...._C import Tensor
from .._observer_base import ObserverBase


class DerivedObserverOrFakeQuantize(ObserverBase):
    """Computes the scale and zero point of a tensor, such as a bias, from observers of other tensors.

    Args:
        obs_or_fqs: the other observers.
        derive_qparams_fn: returns (scale, zero point) from the list of observers.
    """

    def __init__(
        self, dtype: Any, obs_or_fqs: list[Any], derive_qparams_fn: Callable, quant_min: int | None = None, quant_max: int | None = None,
        qscheme: Any = None, ch_axis: int | None = None,
    ):  # fmt: skip
        super().__init__(dtype)
        self.obs_or_fqs, self.derive_qparams_fn = obs_or_fqs, derive_qparams_fn
        self.quant_min, self.quant_max, self.qscheme, self.ch_axis = quant_min, quant_max, qscheme, ch_axis
        if qscheme in (q.per_channel_affine, q.per_channel_symmetric) and ch_axis is None:
            raise AssertionError("Must provide a valid ch_axis if qscheme is per channel")

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """(scale, zero point) that the function computes."""
        return self.derive_qparams_fn(self.obs_or_fqs, **kwargs)
