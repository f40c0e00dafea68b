"""torchao.dtypes: the older name of the base class of quantized weights, and NF4Tensor."""

from ..utils import TorchAOBaseTensor
from ..._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "nf4tensor": "NF4Tensor linear_nf4 to_nf4",
}
__getattr__, __dir__ = lazy_attributes(globals(), ("nf4tensor",), _NAMES)

AffineQuantizedTensor = TorchAOBaseTensor
__all__ = ["AffineQuantizedTensor", "NF4Tensor", "linear_nf4", "to_nf4"]
