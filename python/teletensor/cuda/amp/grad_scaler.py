"""Provides the names of torch.cuda.amp.grad_scaler."""

from ...amp._deprecated import scaler_of
from ...amp.grad_scaler import OptState

__all__ = ["GradScaler", "OptState"]

GradScaler = scaler_of("cuda", __name__)
