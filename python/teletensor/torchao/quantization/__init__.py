"""torchao.quantization: weights that are stored quantized."""

from __future__ import annotations

from ..._lazy import lazy_attributes
from ...serialization._constructor import allow_classes
from .granularity import Granularity, PerAxis, PerBlock, PerGroup, PerRow, PerTensor, PerToken
from .quant_api import *  # noqa: F403
from .quant_primitives import (
    MappingType,
    TorchAODType,
    ZeroPointDomain,
    choose_qparams_affine,
    choose_qparams_affine_with_min_max,
    dequantize_affine,
    quantize_affine,
)
from .quantize_.workflows.float8.float8_static import Float8StaticActivationFloat8WeightConfig, PrototypeFloat8Tensor
from .quantize_.workflows.float8.float8_tensor import Float8Tensor, QuantizeTensorToFloat8Kwargs
from .quantize_.workflows.int4.int4_tensor import Int4Tensor
from .quantize_.workflows.int8.int8_tensor import Int8Tensor, QuantizeTensorToInt8Kwargs
from .quantize_.workflows.intx.intx_unpacked_to_int8_tensor import IntxUnpackedToInt8Tensor
from .quantize_.workflows.nf4.nf4_tensor import NF4Tensor, to_nf4
from .transform_module import register_quantize_module_handler
from .utils import compute_error

AOPerModuleConfig = ModuleFqnToConfig  # noqa: F405
__getattr__, __dir__ = lazy_attributes(globals(), ("pt2e", "qat"), {"linear_quant_modules": "Int8DynActInt4WeightLinear"})
for _kind in (Float8Tensor, Int4Tensor, Int8Tensor, IntxUnpackedToInt8Tensor, NF4Tensor, PrototypeFloat8Tensor):
    _kind.__module__ = __name__  # the name in torchao's files
allow_classes([
    Float8MMConfig, Float8Tensor, Int4Tensor, Int8Tensor, IntxUnpackedToInt8Tensor, MappingType, NF4Tensor, PerAxis, PerBlock,  # noqa: F405
    PerGroup, PerRow, PerTensor, PerToken, PrototypeFloat8Tensor, QuantizeTensorToFloat8Kwargs, QuantizeTensorToInt8Kwargs, ZeroPointDomain,
])  # fmt: skip
