"""torch.masked.maskedtensor: the class of masked tensors, under PyTorch's name of its module."""

from __future__ import annotations

from .._creation import as_masked_tensor, masked_tensor
from .._calls import MaskedTensor, is_masked_tensor

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
