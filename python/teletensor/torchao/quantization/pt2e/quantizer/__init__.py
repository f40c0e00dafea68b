"""torchao.quantization.pt2e.quantizer: torch.ao.quantization.quantizer."""

from .....ao.quantization.quantizer import *  # noqa: F403
from .....ao.quantization.quantizer import __all__ as _names

__all__ = list(_names)
