"""torchao.dtypes: the older name of the base class of quantized weights, and NF4Tensor."""

from ..utils import TorchAOBaseTensor
from .nf4tensor import NF4Tensor, linear_nf4, to_nf4

AffineQuantizedTensor = TorchAOBaseTensor
__all__ = ["AffineQuantizedTensor", "NF4Tensor", "linear_nf4", "to_nf4"]
