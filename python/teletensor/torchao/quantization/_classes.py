"""The classes whose objects torchao's files contain."""

from __future__ import annotations

from ...serialization._constructor import allow_classes
from .granularity import PerAxis, PerBlock, PerGroup, PerRow, PerTensor, PerToken
from .quant_primitives import MappingType, ZeroPointDomain
from .quantize_.workflows.float8.float8_static import PrototypeFloat8Tensor
from .quantize_.workflows.float8.float8_tensor import Float8MMConfig, Float8Tensor, QuantizeTensorToFloat8Kwargs
from .quantize_.workflows.int4.int4_tensor import Int4Tensor
from .quantize_.workflows.int8.int8_tensor import Int8Tensor, QuantizeTensorToInt8Kwargs
from .quantize_.workflows.intx.intx_unpacked_to_int8_tensor import IntxUnpackedToInt8Tensor
from .quantize_.workflows.nf4.nf4_tensor import NF4Tensor

allow_classes([
    Float8MMConfig, Float8Tensor, Int4Tensor, Int8Tensor, IntxUnpackedToInt8Tensor, MappingType, NF4Tensor, PerAxis, PerBlock,
    PerGroup, PerRow, PerTensor, PerToken, PrototypeFloat8Tensor, QuantizeTensorToFloat8Kwargs, QuantizeTensorToInt8Kwargs, ZeroPointDomain,
])  # fmt: skip
