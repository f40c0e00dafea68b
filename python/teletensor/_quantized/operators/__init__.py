"""torch.ops.quantized: operators on quantized tensors and packed weights. Imported at the namespace's first use."""

from ..define import define_all
from . import arithmetic, convolution, embedding, layers, linear, recurrent  # noqa: F401 - their kernels

define_all()
