"""torchao.dtypes: the older name of the base class of quantized weights."""

from ..utils import TorchAOBaseTensor

AffineQuantizedTensor = TorchAOBaseTensor
__all__ = ["AffineQuantizedTensor"]
