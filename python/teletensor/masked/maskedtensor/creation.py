"""torch.masked.maskedtensor.creation: functions that create masked tensors."""

from __future__ import annotations

from .._creation import as_masked_tensor, masked_tensor

__all__ = ["as_masked_tensor", "masked_tensor"]
