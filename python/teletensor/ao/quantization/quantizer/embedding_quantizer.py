"""EmbeddingQuantizer: tables of embeddings in uint8, one scale and zero point per row."""

from __future__ import annotations

from .... import _C, ops
from .... import _quantized_names as q
from ....fx import GraphModule
from ....nn import Embedding
from ....nn import functional as F
from .._observers import PerChannelMinMaxObserver
from .quantizer import Q_ANNOTATION_KEY, QuantizationAnnotation, QuantizationSpec, Quantizer
from .utils import OperatorConfig, OperatorPatternType, QuantizationConfig

__all__ = ["EmbeddingQuantizer", "get_embedding_operators_config"]


def get_embedding_operators_config() -> OperatorConfig:
    """The configuration of embeddings: weights in uint8 with one scale and float zero point per row."""
    weight = QuantizationSpec(
        dtype=_C.uint8,
        qscheme=q.per_channel_affine_float_qparams,
        ch_axis=0,
        observer_or_fake_quant_ctr=PerChannelMinMaxObserver.with_args(eps=2**-12),
    )
    return OperatorConfig(config=QuantizationConfig(None, None, weight, None), operators=[[Embedding], [F.embedding]])


class EmbeddingQuantizer(Quantizer):
    """Quantizes the weights of embeddings."""

    @classmethod
    def get_supported_quantization_configs(cls) -> list[QuantizationConfig]:
        """The configurations of all operators."""
        return [config for config, _ in cls.get_supported_operators()]

    @classmethod
    def get_supported_operator_for_quantization_config(cls, quantization_config: QuantizationConfig) -> list[OperatorPatternType]:
        """The patterns of operators of a configuration."""
        return next((ops for config, ops in cls.get_supported_operators() if config == quantization_config), [])

    @classmethod
    def get_supported_operators(cls) -> list[OperatorConfig]:
        """The configurations with their patterns of operators."""
        return [get_embedding_operators_config()]

    def annotate(self, model: GraphModule) -> GraphModule:
        weight = get_embedding_operators_config().config.weight
        for node in model.graph.nodes:
            if node.op == "call_function" and node.target == ops.aten.embedding.default:
                node.meta[Q_ANNOTATION_KEY] = QuantizationAnnotation(input_qspec_map={node.args[0]: weight})
        return model

    def validate(self, model: GraphModule) -> None:
        """Every graph is valid."""
