"""torchao.quantization: weights that are stored quantized."""

from __future__ import annotations

from ..._lazy import lazy_attributes
from ...serialization._constructor import allow_later

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "granularity": "Granularity PerAxis PerBlock PerGroup PerRow PerTensor PerToken",
    "linear_quant_modules": "Int8DynActInt4WeightLinear",
    "quant_api": (
        "AOPerModuleConfig=ModuleFqnToConfig Float8DynamicActivationFloat8WeightConfig Float8WeightOnlyConfig FqnToConfig "
        "Int4WeightOnlyConfig Int8DynamicActivationInt4WeightConfig Int8DynamicActivationInt8WeightConfig "
        "Int8DynamicActivationIntxWeightConfig Int8StaticActivationInt8WeightConfig Int8WeightOnlyConfig IntxWeightOnlyConfig "
        "ModuleFqnToConfig float8_dynamic_activation_float8_weight float8_weight_only int4_weight_only "
        "int8_dynamic_activation_int4_weight int8_dynamic_activation_int8_weight int8_weight_only quantize_"
    ),
    "quant_primitives": (
        "MappingType TorchAODType ZeroPointDomain choose_qparams_affine choose_qparams_affine_with_min_max dequantize_affine "
        "quantize_affine"
    ),
    "quantize_.workflows.float8.float8_static": "Float8StaticActivationFloat8WeightConfig PrototypeFloat8Tensor",
    "quantize_.workflows.float8.float8_tensor": "Float8MMConfig Float8Tensor QuantizeTensorToFloat8Kwargs",
    "quantize_.workflows.int4.int4_tensor": "Int4Tensor",
    "quantize_.workflows.int8.int8_tensor": "Int8Tensor QuantizeTensorToInt8Kwargs",
    "quantize_.workflows.intx.intx_unpacked_to_int8_tensor": "IntxUnpackedToInt8Tensor",
    "quantize_.workflows.nf4.nf4_tensor": "NF4Tensor to_nf4",
    "transform_module": "register_quantize_module_handler",
    "utils": "compute_error",
}
_MODULES = ("granularity", "pt2e", "qat", "quant_api", "quant_primitives", "transform_module", "utils")
__getattr__, __dir__ = lazy_attributes(globals(), _MODULES, _NAMES)
__all__ = sorted({name.partition("=")[0] for text in _NAMES.values() for name in text.split()})


def _allow_classes() -> None:
    from . import _classes  # noqa: F401 - allows them


allow_later("torchao.quantization.", _allow_classes)
