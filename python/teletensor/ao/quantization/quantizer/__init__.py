"""torch.ao.quantization.quantizer: which tensors of an exported model are quantized, and how."""

from __future__ import annotations

from ...._lazy import lazy_attributes

# Imported when they are used, as those of the package around.
_NAMES = {
    "composable_quantizer": "ComposableQuantizer", "embedding_quantizer": "EmbeddingQuantizer get_embedding_operators_config",
    "quantizer":
        "DerivedQuantizationSpec EdgeOrNode FixedQParamsQuantizationSpec QuantizationAnnotation QuantizationSpec QuantizationSpecBase "
        "Quantizer SharedQuantizationSpec",
    "utils":
        "OperatorConfig OperatorPatternType QuantizationConfig annotate_input_qspec_map annotate_output_qspec get_bias_qspec "
        "get_input_act_qspec get_module_name_filter get_output_act_qspec get_weight_qspec",
}  # fmt: skip
_MODULES = (
    "arm_inductor_quantizer", "composable_quantizer", "embedding_quantizer", "quantizer", "utils", "x86_inductor_quantizer",
    "xnnpack_quantizer", "xnnpack_quantizer_utils",
)  # fmt: skip
__getattr__, __dir__ = lazy_attributes(globals(), _MODULES, _NAMES)
__all__ = [
    "ComposableQuantizer", "DerivedQuantizationSpec", "EdgeOrNode", "EmbeddingQuantizer", "FixedQParamsQuantizationSpec",
    "OperatorConfig", "OperatorPatternType", "QuantizationAnnotation", "QuantizationConfig", "QuantizationSpec",
    "QuantizationSpecBase", "Quantizer", "SharedQuantizationSpec", "annotate_input_qspec_map", "annotate_output_qspec",
    "get_bias_qspec", "get_embedding_operators_config", "get_input_act_qspec", "get_module_name_filter", "get_output_act_qspec",
    "get_weight_qspec",
]  # fmt: skip
