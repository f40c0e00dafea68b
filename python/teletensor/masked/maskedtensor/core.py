"""torch.masked.maskedtensor.core: the class of masked tensors."""

from __future__ import annotations

from .._calls import MaskedTensor, is_masked_tensor

__all__ = ["MaskedTensor", "is_masked_tensor"]
