"""Provides the names of torch.cuda.amp.grad_scaler."""

from ...amp._deprecated import scaler_of
from ...amp.grad_scaler import OptState  # noqa: F401 - programs may import it from here

__all__ = ["GradScaler"]

GradScaler = scaler_of("cuda", __name__)
