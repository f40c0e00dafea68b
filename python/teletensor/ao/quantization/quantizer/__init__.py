"""torch.ao.quantization.quantizer: which tensors of an exported model are quantized, and how."""

from __future__ import annotations

from .composable_quantizer import ComposableQuantizer
from .embedding_quantizer import EmbeddingQuantizer, get_embedding_operators_config
from .quantizer import (
    DerivedQuantizationSpec,
    EdgeOrNode,
    FixedQParamsQuantizationSpec,
    QuantizationAnnotation,
    QuantizationSpec,
    QuantizationSpecBase,
    Quantizer,
    SharedQuantizationSpec,
)
from .utils import (
    OperatorConfig,
    OperatorPatternType,
    QuantizationConfig,
    annotate_input_qspec_map,
    annotate_output_qspec,
    get_bias_qspec,
    get_input_act_qspec,
    get_module_name_filter,
    get_output_act_qspec,
    get_weight_qspec,
)

__all__ = [
    "ComposableQuantizer", "DerivedQuantizationSpec", "EdgeOrNode", "EmbeddingQuantizer", "FixedQParamsQuantizationSpec",
    "OperatorConfig", "OperatorPatternType", "QuantizationAnnotation", "QuantizationConfig", "QuantizationSpec",
    "QuantizationSpecBase", "Quantizer", "SharedQuantizationSpec", "annotate_input_qspec_map", "annotate_output_qspec",
    "get_bias_qspec", "get_embedding_operators_config", "get_input_act_qspec", "get_module_name_filter", "get_output_act_qspec",
    "get_weight_qspec",
]  # fmt: skip
