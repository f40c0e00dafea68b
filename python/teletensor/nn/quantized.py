"""torch.nn.quantized: PyTorch's older name of torch.ao.nn.quantized."""

from ..ao.nn.quantized import *  # noqa: F403
